"""`vaiphy run --shard I/N --phase ...`: one job of an array."""

import os
from collections.abc import Mapping
from typing import Any

import click


def check_shard(options: Mapping[str, Any]) -> None:
    """What a shard needs, and what it cannot have."""
    if options["shard"] is None or options["phase"] is None:
        raise click.UsageError("--shard and --phase belong together, as in --shard 3/16 --phase learn")
    if options["seed"] is None:
        raise click.UsageError("--shard needs a --seed, the same for all shards")
    if options["time_limit"] is not None:
        raise click.UsageError("--shard has no --time-limit: a job that is killed continues from its checkpoint")
    if any(options[name] for name in ("constraint", "monophyletic", "not_monophyletic", "mrbayes_block")):
        raise click.UsageError(
            "--shard does not support constraints or a mrbayes block yet; run without shards, or with --cluster"
        )
    if options["method"] != "posterior" or options["alignment"] == "-":
        raise click.UsageError("--shard is for --method posterior and an alignment that is a file")


def do_shard(options: Mapping[str, Any], prefix: str, outgroup: tuple[str, ...], executor: Any, listener: Any) -> None:
    """The shard that the options of `vaiphy run` describe."""
    from vaiphy.runner.shards import Reading, parse_shard, run_shard

    rate = options["prior_rate"]
    reading = Reading(
        options["alignment"], options["format_"], options["matchchar"], options["missing"], options["seqtype"],
        options["safe_names"], os.getcwd(),
    )  # fmt: skip
    same = ("seed", "threads", "partition", "model", "redo", "accuracy", "particles", "bridges", "prior_only")
    path = run_shard(
        reading, parse_shard(options["shard"]), options["phase"], prefix=prefix, outgroup=outgroup, executor=executor,
        listener=listener, length_prior=options["length_prior"] or f"exp({10.0 if rate is None else rate:.15g})",
        n_trees=options["trees"], part_rates=options["rates"], **{name: options[name] for name in same},
    )  # fmt: skip
    if not options["quiet"]:
        click.echo(f"written: {path}", err=True)
