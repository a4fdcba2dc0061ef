"""`wattloom kubernetes scheduler`: decides for the pods that name it, beside kube-scheduler."""

from pathlib import Path

import click

from wattloom.cli.options import COUNT, LOG_FILE, SECONDS, Finite, Whole, policy_names


@click.command(short_help="Schedule the pods whose schedulerName is ours.")
@click.option("--kubeconfig", type=LOG_FILE, metavar="F", help="Left out: $KUBECONFIG, ~/.kube/config, or this pod's.")
@click.option("--context", default="", metavar="C", help="A context of it. Left out: the current one.")
@click.option("--name", default="wattloom", show_default=True, help="The schedulerName of the pods to schedule.")
@click.option(
    "--policy", default="least-joules", show_default=True, shell_complete=policy_names, metavar="P", help="Who decides."
)
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="Lead only with the lease.")
@click.option("--namespace", default="", metavar="N", help="Of the lease. Left out: the context's, or this pod's.")
@click.option("--lease-name", default="wattloom-scheduler", show_default=True, metavar="L", help="Which lease.")
@click.option(
    "--identity",
    default="",
    metavar="ID",
    help="How this replica signs the lease. Left out: the host's name with a random tail.",
)
@click.option(
    "--bind-concurrency",
    type=Whole(1, 1024),
    default=48,
    show_default=True,
    help="Bindings under way at once.",
)
@click.option("--qps", type=Finite(0.0, 1e6), default=0.0, help="Pods decided per second at most. 0: no limit.")
@click.option(
    "--first-answer",
    type=SECONDS,
    default=20.0,
    show_default=True,
    metavar="S",
    help="Seconds that the API server may take for its first answer.",
)
@click.option(
    "--publish-watts/--no-publish-watts",
    default=True,
    show_default=True,
    help="Write wattloom.dev/milliwatts on nodes.",
)
@click.option("--http", default="127.0.0.1:10262", show_default=True, metavar="HOST:PORT", help="Empty: none.")
@click.option(
    "--probes", default="", metavar="HOST:PORT", help="Health and readiness alone, for everybody. Left out: none."
)
@click.option(
    "--token-file", type=LOG_FILE, metavar="F", help="A token by which others may ask (at least 16 characters)."
)
@click.option(
    "--log",
    type=LOG_FILE,
    metavar="F",
    help="Every event and decision, for `wattloom why` and `replay`. Of a folder: decisions.log in it.",
)
@click.option(
    "--log-size",
    type=COUNT,
    default=128,
    show_default=True,
    metavar="MIB",
    help="A new log begins after so much; the one before it is kept as F.1.",
)
@click.option(
    "--log-format", type=click.Choice(["words", "json"]), default="words", show_default=True, help="Of what is said."
)
@click.option("--verbose", is_flag=True, help="Say more.")
def scheduler(
    kubeconfig: Path | None,
    context: str,
    name: str,
    policy: str,
    leader_elect: bool,
    namespace: str,
    lease_name: str,
    identity: str,
    bind_concurrency: int,
    qps: float,
    first_answer: float,
    publish_watts: bool,
    http: str,
    probes: str,
    token_file: Path | None,
    log: Path | None,
    log_size: int,
    log_format: str,
    verbose: bool,
) -> None:
    """Schedule the pods of a cluster whose schedulerName is ours, beside kube-scheduler, until it is ended.

    It filters nodes as kube-scheduler does, the policy chooses among them, and an event on each pod says why it went
    where it went. Pods that ask for something it does not know wait, with an event that names the field.

    /healthz, /readyz, /metrics and /why answer at --http: all of them to programs of this machine (and `kubectl
    port-forward`) where that is an address of loopback, as it is by default. On any other address only the first two
    are for everybody, the rest for whoever brings the token. --probes is a second address with the first two alone.

    \b
    Examples:
      wattloom kubernetes scheduler
      wattloom kubernetes scheduler --context test --policy spread --no-leader-elect
      wattloom kubernetes scheduler --log decisions.log --log-format json
    """
    from wattloom.cli.structured_log import set_up_logging
    from wattloom.errors import MissingExtra

    try:
        from wattloom.kubernetes.client.kubeconfig import target_of
        from wattloom.kubernetes.options import Options, usable_policy
        from wattloom.kubernetes.scheduler.scheduler import run
        from wattloom.serving.access import read_token
    except ModuleNotFoundError as missing:
        if missing.name not in ("httptools", "yaml"):
            raise
        raise MissingExtra("wattloom kubernetes", "kubernetes") from None

    set_up_logging(log_format, verbose=verbose)
    options = Options(
        name=name,
        policy=policy,
        leader_elect=leader_elect,
        lease_namespace=namespace,
        lease_name=lease_name,
        identity=identity,
        bind_concurrency=bind_concurrency,
        pods_per_second=qps,
        first_answer_s=first_answer,
        publish_watts=publish_watts,
        http=http,
        probes=probes,
        token=read_token(token_file) if token_file is not None else "",
        log=log,
        log_size=log_size << 20,
    )
    usable_policy(policy)  # before anything is asked of a cluster: a wrong one is wrong everywhere
    run(target_of(kubeconfig, context), options)
