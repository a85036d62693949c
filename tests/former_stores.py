"""Stores as earlier versions wrote them, made by hand from present ones.

Nothing here uses the code that writes or upgrades: formats 1 and 2 must stay readable whatever
becomes of it.
"""

import hashlib
import json

import numpy as np
import pyarrow.parquet as pq

SINCE_3 = ("next_state", "disturbance")
FORMER_KEYS = {"reported_steps": "shown_steps", "max_runs": "most_runs"}
FORMER_AGENTS = {"fixed-quantile": "brmdp"}
NEW_KEYS = ("prior", "label")


def rewrite(store, number, programs=None):
    """Turn a present store into one of format 1 or 2; ``programs`` gives former names."""
    for path in sorted(store.directory.glob("runs/*.parquet")):
        rewrite_run(path, number, programs)
    description = store.directory / "experiment.json"
    content = json.loads(description.read_text())
    experiment = content["experiment"]
    experiment["cases"] = [former_case(case, programs) for case in experiment["cases"]]
    content["format"] = number
    if number == 1:
        del content["code"], content["worlds"]
    else:
        computed = {case["name"] for case in experiment["cases"] if "program" in case}
        worlds = content["worlds"]
        content["worlds"] = {name: "" if name in computed else worlds[name] for name in worlds}
    description.write_text(json.dumps(content))


def rewrite_run(path, number, programs=None):
    """The same for the file of one run."""
    table = pq.read_table(path)
    facts = json.loads(table.schema.metadata[b"brmdp"])
    facts |= {"format": number, "case": former_case(facts["case"], programs)}
    if number == 1:
        del facts["code"], facts["world"]
    if "n_states" in facts:
        table = table.drop_columns(list(SINCE_3))
    elif number == 2:
        facts["world"] = ""  # programs had no digest
    text = json.dumps(facts, sort_keys=True)
    seal = hashlib.sha256(f"{content_digest(table)}|{text}".encode()).hexdigest()
    pq.write_table(table.replace_schema_metadata({"brmdp": text, "sha256": seal}), path)


def former_case(case, programs):
    """A description with the keys and names of formats 1 and 2."""
    former = {FORMER_KEYS.get(key, key): case[key] for key in case if key not in NEW_KEYS}
    if "agent" in former:
        former["agent"] = FORMER_AGENTS.get(former["agent"], former["agent"])
    if "program" in former:
        former["program"] = (programs or {})[former["program"]]
    return former


def content_digest(table, lengths=False):
    """The digest of the columns; the present one includes the lengths of texts."""
    result = hashlib.sha256(str(table.num_rows).encode())
    for name in table.column_names:
        column = table[name].combine_chunks()
        result.update(f"|{name}|{column.type}|".encode())
        result.update(np.packbits([value is not None for value in column.to_pylist()]).tobytes())
        present = [value for value in column.to_pylist() if value is not None]
        if str(column.type) == "string":
            if lengths:
                sizes = [len(text.encode()) for text in present]
                result.update(np.array(sizes, dtype=np.int64).tobytes())
            result.update(("" if lengths else "|").join(present).encode())
        elif str(column.type).startswith("list"):
            result.update(np.array([len(value) for value in present], dtype=np.int32).tobytes())
            flat = [number for value in present for number in value]
            result.update(np.array(flat, dtype=np.float64).tobytes())
        else:
            dtype = {"int32": np.int32, "int64": np.int64, "double": np.float64, "bool": np.bool_}
            result.update(np.array(present, dtype=dtype[str(column.type)]).tobytes())
    return result.hexdigest()
