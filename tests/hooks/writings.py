"""Sentences in writings whose letters take from one byte to four: what counts characters counts too little."""

WRITINGS = {
    "Chinese": "付款之前先检查订单的地址和邮编并且等待确认邮件。",
    "Cyrillic": "Перед оплатой проверьте адрес доставки и почтовый индекс. ",
    "emoji": "📦🚚🔧🇳🇴🧾✅💶📮",
    "Latin": "Check the address and the postcode before you pay. ",
}
