"""Who got in, as Markdown, and whether each wrong answer has a reason."""

from node import KINDS


def is_wrong(outcome):
    return outcome is not None and outcome.got != outcome.ought


def _row(*cells):
    return "| " + " | ".join(cells) + " |"


def _rows(results):
    """[(what was asked, {kind: Outcome})], in the order of the scene."""
    rows = {}
    for kind, outcomes in results.items():
        for outcome in outcomes or []:
            if kind in rows.setdefault(outcome.text, {}):
                raise ValueError(f"a scene asks twice: {outcome.text}")
            rows[outcome.text][kind] = outcome
    return list(rows.items())


def _count(outcomes):
    if outcomes is None:
        return "scene failed"
    if not outcomes:
        return "–"
    wrong_in = sum(is_wrong(o) and o.got for o in outcomes)
    wrong_out = sum(is_wrong(o) and not o.got for o in outcomes)
    counts = [f"**{wrong_in} wrongly in**"] * bool(wrong_in) + [f"{wrong_out} wrongly out"] * bool(wrong_out)
    return ", ".join(counts) or "right"


def summary(played):
    """A line a scene. played: [(title, {kind: [Outcome], or None if the scene failed})]."""
    kinds = list(played[0][1])
    lines = [_row("scene", "asked", *(KINDS[k] for k in kinds)), _row(*["---"] * (2 + len(kinds)))]
    for title, results in played:
        lines.append(_row(title, str(len(_rows(results))), *(_count(results[k]) for k in kinds)))
    total = {k: [o for _, results in played for o in results[k] or []] for k in kinds}
    lines.append(_row("all", str(sum(len(_rows(r)) for _, r in played)), *(_count(total[k]) for k in kinds)))
    return "\n".join(lines)


def details(played):
    """A line a question, with the reasons of wrong answers as notes."""
    kinds = list(played[0][1])
    notes = []

    def cell(kind, outcome):
        if outcome is None:
            return "–"
        text = "in" if outcome.got else "out"
        if not is_wrong(outcome):
            return text
        reason = outcome.reasons.get(kind, "not explained")
        if reason not in notes:
            notes.append(reason)
        return f"**{text}** [{notes.index(reason) + 1}]" if outcome.got else f"*{text}* [{notes.index(reason) + 1}]"

    lines = [_row("who asks", "ought to be", *(KINDS[k] for k in kinds)), _row(*["---"] * (2 + len(kinds)))]
    for title, results in played:
        lines.append(_row(f"*{title}*", "", *("scene failed" if results[k] is None else "" for k in kinds)))
        for text, outcomes in _rows(results):
            ought = next(iter(outcomes.values())).ought
            lines.append(_row(text, "in" if ought else "out", *(cell(k, outcomes.get(k)) for k in kinds)))
    return "\n".join(lines + [""] + [f"{i}. {note}" for i, note in enumerate(notes, 1)])


def surprises(played):
    """What is wrong without a reason, and reasons for what is right, unless they hold now and then."""
    for title, results in played:
        for text, outcomes in _rows(results):
            for kind, outcome in outcomes.items():
                reason = outcome.reasons.get(kind)
                if not is_wrong(outcome) and (reason or "").startswith("Now and then"):
                    continue
                if is_wrong(outcome) != (reason is not None):
                    why = outcome.said if is_wrong(outcome) else "a reason is given for the contrary"
                    yield f"{title}: {text}: {KINDS[kind]}: {'in' if outcome.got else 'out'}: {why}"
