"""Write the outputs again."""

import os

from tests.invoking import invoke
from tests.migration import CASES, INPUTS, OUTPUTS, SOMEWHERE, WITH_STEPS

os.chdir(INPUTS)
for name, files in CASES.items():
    for words, ending in ((), "properties"), (("--steps",), "steps.txt"):
        if words and name not in WITH_STEPS:
            continue
        text = invoke("migrate", *files, *words).stdout.replace(str(INPUTS), SOMEWHERE)
        (OUTPUTS / f"{name}.{ending}").write_text(text)
