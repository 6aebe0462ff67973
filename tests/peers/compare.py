"""Whether posenc and transformers say the same of a configuration."""

import explained
import hugging_face
import structure

AGREE, WARNED, BUILT, BUILT_WARNED, WRONG_WARNED, WRONG, BOTH_REFUSE, POSENC_REFUSES, POSENC_ACCEPTS, ACCEPTS_WARNED = (
    OUTCOMES
) = (
    "agree",
    "agree, with a warning",
    "agree in what its modules show",
    "agree in what its modules show, with a warning",
    "differ, with a warning",
    "DIFFER IN SILENCE",
    "refused by both",
    "refused by posenc alone",
    "accepted by posenc alone",
    "accepted by posenc alone, with a warning",
)


def close(a, b, relative):
    return abs(a - b) <= relative * max(abs(a), abs(b))


def difference(ours, theirs):
    """What one layer's two readings disagree in; None: nothing."""
    if ours["head_dim"] != theirs["head_dim"]:
        return "head_dim"
    if theirs["causal"] is not None and ours["causal"] != theirs["causal"]:
        return "causal"
    window = theirs["window"]
    if window is not None and theirs["causal"] is False:
        window = 2 * theirs["after"]
    if theirs["causal"] is not None and (ours["window"], ours["chunked"]) != (window, theirs["chunked"]):
        # What a window of a token shows to each side, posenc says in whole.
        if theirs["causal"] or ours["window"] is None or window is None or abs(ours["window"] - window) > 1:
            return "window"
    mine, his = ours["rotation"], theirs["rotation"]
    if his == "unknown":
        return "unknown"
    if (mine is None) != (his is None):
        return "rotates"
    if mine:
        if (mine["rotary_dim"], mine["first_dim"]) != (his["rotary_dim"], his["first_dim"]):
            return "rotary_dim"
        # Multi-head latent attention reorders channels, so that neighbours become halves.
        if mine["pairing"] != his["pairing"] and his["first_dim"] == 0:
            return "pairing"
        if len(mine["inv_freq"]) != len(his["inv_freq"]) or not all(
            close(a, b, 1e-5) for a, b in zip(mine["inv_freq"], his["inv_freq"])
        ):
            return "frequencies"
        if not close(mine["attention_factor"], his["attention_factor"], 1e-6):
            return "attention_factor"
    if theirs["scaling"] and not close(ours["scaling"], theirs["scaling"], 1e-6):
        return "scaling"
    return None


def differences(ours, theirs):
    if len(ours) != len(theirs):
        return ["layers"]
    return sorted({d for d in map(difference, ours, theirs) if d})


def unlike(ours, theirs):
    """What posenc says of a model and its modules do not bear out."""
    found = set()
    for stack in ours:
        of_width = [count for _, head_dim, count in theirs["attention"] if head_dim in (stack["head_dim"], None)]
        if stack["layers"] not in of_width and stack["layers"] != sum(of_width):
            found.add(f"{stack['stack']}: layers")
        if stack["table"] and tuple(stack["table"]) not in theirs["tables"]:
            found.add(f"{stack['stack']}: table")
    return sorted(found)


def judge_structure(raw, ours, warnings, why):
    """By its modules, what could not be run."""
    try:
        theirs = structure.of(raw)
    except hugging_face.Refused as refused:
        return (ACCEPTS_WARNED if warnings else POSENC_ACCEPTS), f"{why} | {refused}", warnings
    found = unlike(ours, theirs)
    if found:
        return (
            (WRONG_WARNED if warnings else WRONG),
            " ".join(found) + f" of {theirs['attention'][:3]} {theirs['tables'][:3]}",
            warnings,
        )
    return (BUILT_WARNED if warnings else BUILT), "", warnings


def judge(raw, length=None, by_modules=True):
    """(outcome, what differs or why it is refused, posenc's warnings).

    by_modules: what words alone do not run is judged by its modules. Without, it counts as refused: of a family that
    runs, a file that does not is one that transformers cannot use."""
    try:
        ours, warnings = explained.run(raw, length)
    except explained.Refused as refused:
        ours, warnings, why = None, [], str(refused)
    try:
        theirs = hugging_face.run(raw, length)
    except hugging_face.Refused as refused:
        if ours is None:
            return BOTH_REFUSE, f"{why} | {refused}", warnings
        if not by_modules:
            return (ACCEPTS_WARNED if warnings else POSENC_ACCEPTS), str(refused), warnings
        return judge_structure(raw, *explained.structure(raw), str(refused))
    if ours is None:
        return POSENC_REFUSES, why, warnings
    found = differences(ours, theirs)
    if found:
        return (WRONG_WARNED if warnings else WRONG), " ".join(found), warnings
    return (WARNED if warnings else AGREE), "", warnings
