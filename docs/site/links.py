"""Links of a page, outside of its code. `links.py PAGE…` says which links out of docs/ are not found, without mkdocs."""

import re
import sys

# Blocks, and spans of a line. The last backtick of a link's own code, [`x`](y), opens no span.
CODE = re.compile(r"(^```.*?^```|`(?!\])[^`\n]*`(?!\]))", re.M | re.S)
# Text and target; of a picture out of docs/ the third and fourth group.
LINK = re.compile(r"(?<!!)\[([^\]\[]*)\]\(([^)\s]+)\)|(?<=!)\[([^\]]*)\]\((\.\./[^)\s]+)\)")


def replaced(markdown, shown):
    parts = CODE.split(markdown)
    return "".join(part if i % 2 else LINK.sub(shown, part) for i, part in enumerate(parts))


def main(pages):
    lost = 0
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
        left = re.findall(r"\]\(\.\./[^)\s]*", replaced(text, lambda match: ""))
        for link in left:
            print(f"{page}: the site does not see its link {link[2:]}")
        lost += len(left)
    return lost > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
