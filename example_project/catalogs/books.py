"""Which books do the simulated openBD and Open Library hold? A handful of real ones: facts only, no texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Book:
    """What both APIs say about an edition."""

    isbn: str
    title: str
    author: str
    publisher: str
    published: str


#: A Japanese catalog first asks openBD …
IN_OPENBD = {
    book.isbn: book
    for book in (
        Book("9784063879179", "甘々と稲妻（1）", "雨隠ギド", "講談社", "20130906"),
        Book(
            "9784535585744", "食のリスク学 : 氾濫する「安全・安心」をよみとく視点", "中西準子", "日本評論社", "2010-01"
        ),
        Book("9784798142418", "スターティングGo言語", "松尾愛賀", "翔泳社", "20160414"),
    )
}

#: … and then Open Library, which has books of everywhere.
IN_OPEN_LIBRARY = {
    book.isbn: book
    for book in (
        Book("9782070464234", "La Horde du Contrevent", "Alain Damasio", "Gallimard", "2015"),
        Book("9780262033848", "Introduction to Algorithms", "Thomas H. Cormen", "MIT Press", "2009"),
        Book("9780141439518", "Pride and Prejudice", "Jane Austen", "Penguin", "2002"),
        Book(
            "9780306406157", "Error-Correction Coding for Digital Communications", "George C. Clark", "Plenum", "1981"
        ),
    )
}

#: The default catalog sells things: the first source has three of them, the second has others and one in common.
IN_PRIMARY = {"P001": "Blue teapot", "P003": "Garden bench", "P005": "Desk lamp"}
IN_SECONDARY = {"P001": "Teapot, blue (second source)", "P002": "Red kettle", "P004": "Oak shelf"}
