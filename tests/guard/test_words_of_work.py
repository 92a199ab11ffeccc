"""Tasks in other languages than English, and in Title Case, keep their words; names of persons in them still go."""

from __future__ import annotations

import pytest

from lessonbank.guard.gate._named_entities import people

WORK = [
    "Storniere Bestellung W1",
    "Erstelle Rechnung 4711",
    "Kündige Vertrag 12",
    "Aktualisiere Lieferadresse",
    "Storniere Flug LH 4",
    "Bearbeite Rückerstattung",
    "Annulla Ordine W1",
    "Verifica Prenotazione 7",
    "Borra Pedido 5",
    "Corrige Facturación 3",
    "Supprime la Facture 12",
    "Cancele Pedido 9",
    "Annuleer Bestelling 9",
    "Anuluj Zamówienie 3",
    "Deploy Staging Server",
    "Fix the Date Parser",
]
PERSONS = {
    "Lösche Benutzer Anna Schmidt": "Anna Schmidt",
    "Storniere Flug für Anna Flug": "Anna Flug",
    "Annulla Ordine di Maria Rossi": "Maria Rossi",
    "Rechnung für Hans Meier erstellen": "Hans Meier",
    "Ändere Adresse von Frau Müller": "Müller",
    "Update Billing Address for John Smith": "John Smith",
    "Borra Pedido de José García": "José García",
    "Ask Peter Hartung": "Peter Hartung",
}


@pytest.mark.parametrize("task", WORK)
def test_words_of_work_are_no_name(task: str) -> None:
    assert [task[found.start : found.end] for found in people(task)] == []


@pytest.mark.parametrize("task", PERSONS)
def test_the_name_of_a_person_among_them_is_one(task: str) -> None:
    assert PERSONS[task] in [task[found.start : found.end] for found in people(task)]
