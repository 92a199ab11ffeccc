"""Finds the turn in which a user asks for something: people greet before they ask."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_LONGEST = 60
"""Characters of a turn that can be a mere greeting."""
_MOST_WORDS = 6
_ASKS = re.compile(r"[?？؟;\d_@#/\\`=<>{}\[\]$%&*+~^|]")
"""Question marks, digits, and signs of names, paths and code. (A Greek question mark is a semicolon.)"""
_WORD = re.compile(r"\w+")
_DRAWN_OUT = re.compile(r"(.)\1{2,}")


def _fold(text: str) -> str:
    """Small letters without accents, in one spelling."""
    spelled = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in spelled if not unicodedata.category(letter).startswith("M"))


# Words that greet, thank or agree, and what goes with them. No verb of asking and no noun is among them. A turn made
# of nothing else asks for nothing. Languages without blanks have whole phrases.
_EMPTY_WORDS = frozenset(
    _fold(
        """
        hi hello hey hiya howdy greetings morning afternoon evening day good there everyone everybody all team folks
        sir madam bot assistant again dear
        thanks thank thx ty you very much so many cheers appreciated lot a
        ok okay k sure yes yep yeah yup alright great perfect nice cool fine understood got it no nope
        welcome bye goodbye
        hallo moin servus guten tag morgen abend gruss gott danke vielen dank schon sehr bitteschon ja gut alles klar
        bonjour bonsoir salut coucou merci beaucoup bien oui tous
        hola buenos buenas dias tardes noches gracias muchas vale si que tal
        ola oi bom boa dia tarde noite obrigado obrigada muito sim
        ciao buongiorno buonasera salve grazie mille va bene
        goedemorgen goedemiddag goedenavond goedendag hoi dank je wel bedankt
        hej hejsan hei god dag kvall tack takk tak
        czesc dzien dobry wieczor dziekuje tak
        привет здравствуйте здравствуй добрый день доброе утро вечер спасибо большое хорошо да
        привіт вітаю добрий ранок дякую добре так
        merhaba selam gunaydin iyi gunler aksamlar tesekkurler tesekkur ederim tamam
        γεια σου σας καλημερα καλησπερα ευχαριστω ναι
        مرحبا أهلا وسهلا السلام عليكم صباح الخير مساء شكرا جزيلا حسنا نعم
        שלום היי תודה רבה בוקר טוב ערב
        नमस्ते नमस्कार धन्यवाद ठीक है हाँ
        halo hai selamat pagi siang sore malam terima kasih baik ya
        xin chao cam on
        你好 您好 嗨 早上好 下午好 晚上好 谢谢 謝謝 谢谢你 好的 好 是的 大家好
        こんにちは こんばんは おはよう おはようございます ありがとう ありがとうございます はい もしもし
        안녕 안녕하세요 감사합니다 고마워요 네
        """
    ).split()
)


def first_request(texts: Iterable[str], /) -> str | None:
    """The first of a user's turns that asks for something; the first that is not blank where all of them only greet."""
    first = None
    for text in texts:
        if not text.strip():
            continue
        if not only_greets(text):
            return text
        first = first or text
    return first


def only_greets(text: str, /) -> bool:
    """Whether a turn is a greeting, a thank-you or an agreement and nothing else.

    When in doubt it is not: a turn with a question mark, a digit, a sign of code, or one other word asks for something.
    """
    if len(text) > _LONGEST or _ASKS.search(text):
        return False
    words = _WORD.findall(_fold(text))
    return len(words) <= _MOST_WORDS and all(_is_empty(word) for word in words)


def _is_empty(word: str) -> bool:
    return word in _EMPTY_WORDS or _DRAWN_OUT.sub(r"\1", word) in _EMPTY_WORDS
