"""Rows in the public corpora's schemas, written for these tests."""

from __future__ import annotations

from typing import Any

HOTPOT_HUB: dict[str, Any] = {
    "id": "h1",
    "question": "  Which river runs through the birthplace of X? ",
    "answer": "Aare",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": {"title": ["X", "Bern", "X"], "sent_id": [0, 1, 2]},
    "context": {
        "title": ["Other", "X", "Bern", "Blank"],
        "sentences": [["One.", " Two."], ["X was born in Bern.", ""], ["On the Aare."], [" "]],
    },
}
HOTPOT_OFFICIAL: dict[str, Any] = {
    "_id": "h1",
    "question": HOTPOT_HUB["question"],
    "answer": "Aare",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["X", 0], ["Bern", 1], ["X", 2]],
    "context": [
        ["Other", ["One.", " Two."]],
        ["X", ["X was born in Bern.", ""]],
        ["Bern", ["On the Aare."]],
        ["Blank", [" "]],
    ],
}
SQUAD_HUB: dict[str, Any] = {
    "id": "s1",
    "title": "Caf%C3%A9_de_Flore",
    "context": " The café opened in the 1880s.\n",
    "question": "When did it open?",
    "answers": {"text": ["the 1880s", "1880s", "the 1880s", " "], "answer_start": [20, 24, 20, 0]},
}
TRIVIA_HUB: dict[str, Any] = {
    "question": "Which country?",
    "question_id": "t1",
    "entity_pages": {
        "doc_source": ["TagMe", "Search"],
        "title": ["A", "B"],
        "filename": ["A.txt", "B.txt"],
        "wiki_context": ["text a", "  "],
    },
    "search_results": {
        "description": [""],
        "filename": ["w.txt"],
        "rank": [0],
        "title": ["W"],
        "url": ["u"],
        "search_context": ["text w"],
    },
    "answer": {"value": "Portugal", "aliases": ["Portugal", "PRT", ""], "type": "WikipediaEntity"},
}
TRIVIA_OFFICIAL: dict[str, Any] = {
    "Question": "Which country?",
    "QuestionId": "t1",
    "Answer": {"Value": "Portugal", "Aliases": ["Portugal", "PRT"], "Type": "WikipediaEntity"},
    "EntityPages": [{"Filename": "A.txt", "Title": "A", "DocSource": "TagMe"}],
    "SearchResults": [],
}
NQ_GOLD: dict[str, Any] = {
    "question": "where is it",
    "answers": ["Iran", "Iran ", "Persia"],
    "ctxs": [
        {"title": "D", "text": "no answer here", "hasanswer": False, "isgold": False},
        {"title": "G", "text": "it is in Iran", "hasanswer": True, "isgold": True},
    ],
}
SAMPLE: dict[str, Any] = {
    "id": "x-1",
    "kind": "trivia",
    "question": "Which year?",
    "answer": "1815",
    "aliases": [],
    "answer_type": "year",
    "passages": [{"title": "T", "text": "In 1815.", "is_gold": True}],
}
