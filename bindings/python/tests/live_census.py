"""Bugs that people reported, planted in small live models of every family: which of them posenc.hf finds, and by which name.

    build/python-venv/bin/python bindings/python/tests/live_census.py

prints a line for each bug: in how many families it was planted, in how many it was found and named, and by which codes; then what
was found in the healthy models, which should be nothing. A family is passed over where it has nothing to plant a bug in (no window to
lose), or is not in this version of transformers.
"""

import warnings
from contextlib import ExitStack

import torch
import transformers
from live_bugs import BUGS
from live_models import CACHE, FAMILIES, PICTURES, built, built_with_pictures, codes, picture, prompt, run
from live_planting import NotHere

import posenc.hf as hf


def made(family, **more):
    return built_with_pictures(family) if family in PICTURES else built(family, **more)


def planted(name: str, family: str) -> set | None:
    """The codes found in a family's model with a bug, notes for what only a note tells; None where it has no place there."""
    what = BUGS[name]
    try:
        model = made(family, **(what.build or {}))
        if codes(run(model)[0]):  # transformers 4 drops the scaling of a family itself
            return None
    except Exception:  # it takes no such configuration, or this transformers has no such family
        return None
    with ExitStack() as undo, torch.no_grad():
        try:
            seen = what.plant(model, undo)
        except NotHere:
            return None
    return codes(seen) | codes(seen, "note")


def census(name: str) -> tuple[dict, dict]:
    """{family: codes} of a bug where it was found and named, and where it was not."""
    found, missed = {}, {}
    for family in BUGS[name].families or FAMILIES:
        seen = planted(name, family)
        if seen is not None:
            (found if seen & BUGS[name].codes else missed)[family] = seen
    return found, missed


def healthy(family: str) -> list:
    """What is said of a healthy model of a family: as it is, generating, padded on the left with a cache, packed, in 16 bits."""
    model = made(family)
    ids, inputs = picture(model) if family in PICTURES else (prompt(12), {})
    reports = [run(model)[0], run(model, ids, **inputs)[0]]
    with torch.no_grad(), hf.capture(model, layers="all") as seen:
        model.generate(ids, **inputs, max_new_tokens=4, do_sample=False)
    reports.append(seen)
    if family not in PICTURES:
        mask = torch.tensor([[0] * 5 + [1] * 19, [1] * 24])
        with torch.no_grad(), hf.capture(model, layers="all") as seen:
            cache = model(prompt(batch=2)[:, :16], attention_mask=mask[:, :16], use_cache=True)[CACHE]
            if cache is not None:
                model(prompt(batch=2)[:, 16:], attention_mask=mask, **{CACHE: cache})
        reports.append(seen)
        reports.append(run(model, position_ids=torch.tensor([[*range(10), *range(14)]]))[0])
        reports.append(run(made(family, dtype=torch.bfloat16))[0])
    return [str(each.check()) for each in reports if codes(each)]


def main() -> None:
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    print(
        f"transformers {transformers.__version__}, {len(FAMILIES)} families of text and {len(PICTURES)} that look at pictures\n"
    )
    print(f"{'planted':>7} {'found':>5}  bug")
    total = 0
    for name in BUGS:
        found, missed = census(name)
        total += len(found) + len(missed)
        by = sorted(set().union(*found.values()) & BUGS[name].codes) if found else []
        print(f"{len(found) + len(missed):7} {len(found):5}  {name} ({BUGS[name].report}): {', '.join(by)}")
        for family, seen in missed.items():
            print(f"{'missed':>13}  {family}: {', '.join(sorted(seen)) or 'nothing'}")
    reports = {family: healthy(family) for family in (*FAMILIES, *PICTURES)}
    wrong = {family: said for family, said in reports.items() if said}
    print(f"\n{total} planted; healthy models with something found: {len(wrong)} of {len(reports)}")
    for family, said in wrong.items():
        print(family, *said, sep="\n    ")


if __name__ == "__main__":
    main()
