"""What posenc raises and warns with."""

from __future__ import annotations


class Error(ValueError):
    """An argument or a file that breaks a rule: `where` it is, the `rule`, the `value` found, and the `cure`."""

    def __init__(self, message: str, where: str = "", rule: str = "", value: str = "", cure: str = "") -> None:
        super().__init__(message)
        self.where, self.rule, self.value, self.cure = where, rule, value, cure

    def __reduce__(self):
        return Error, (str(self), self.where, self.rule, self.value, self.cure)


class Warning(UserWarning):
    """Something in a model's files that deserves a look; `code` is stable (docs/warnings.md)."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code
