"""A claim: a figure that was measured, and what it should be."""


def claim(name, value, target, met, detail=""):
    """`value` and `target` are text; met is None where the run could not tell."""
    return {"claim": name, "value": value, "target": target, "met": met, "detail": detail}


def absent(name, reason):
    return claim(name, "not measured", "", None, str(reason))
