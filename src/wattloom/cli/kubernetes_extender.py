"""`wattloom kubernetes extender`: watts and costs for an unmodified kube-scheduler."""

from pathlib import Path

import click

from wattloom.cli.options import LOG_FILE, WATTS, Finite, Whole, policy_names
from wattloom.cli.printing import say


@click.command(short_help="Advise kube-scheduler by watts and cost.")
@click.option("--kubeconfig", type=LOG_FILE, metavar="F", help="Left out: $KUBECONFIG, ~/.kube/config, or this pod's.")
@click.option("--context", default="", metavar="C", help="A context of it. Left out: the current one.")
@click.option(
    "--policy", default="least-joules", show_default=True, shell_complete=policy_names, metavar="P", help="Who advises."
)
@click.option(
    "--keep",
    default="1",
    show_default=True,
    metavar="N",
    help="How many nodes, the best by the policy, kube-scheduler may choose from; `all`: all that watts allow.",
)
@click.option("--cap", type=WATTS, metavar="W", help="Watts that the whole cluster may draw. Left out: no limit.")
@click.option("--listen", default="127.0.0.1:10263", show_default=True, metavar="HOST:PORT", help="For kube-scheduler.")
@click.option("--tls-cert", type=LOG_FILE, metavar="F", help="Answer by HTTPS, with this certificate.")
@click.option("--tls-key", type=LOG_FILE, metavar="F", help="The certificate's key.")
@click.option("--client-ca", type=LOG_FILE, metavar="F", help="Only callers with a certificate of this authority.")
@click.option("--token-file", type=LOG_FILE, metavar="F", help="Only callers with this token (at least 16 characters).")
@click.option("--http", default="127.0.0.1:10264", show_default=True, metavar="HOST:PORT", help="Health; empty: none.")
@click.option(
    "--probes", default="", metavar="HOST:PORT", help="Health and readiness alone, for everybody. Left out: none."
)
@click.option(
    "--assume",
    type=Finite(0.0, 3600.0),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Seconds that a pod is taken to be on its way to where it was sent.",
)
@click.option(
    "--publish-watts/--no-publish-watts",
    default=True,
    show_default=True,
    help="Write wattloom.dev/milliwatts on nodes.",
)
@click.option("--weight", type=Whole(1, 100), default=3, show_default=True, help="For --print-config.")
@click.option(
    "--scheduler-kubeconfig", type=LOG_FILE, metavar="F", help="kube-scheduler's own kubeconfig, for --print-config."
)
@click.option("--print-config", is_flag=True, help="Print kube-scheduler's configuration for it, and end.")
@click.option(
    "--log-format", type=click.Choice(["words", "json"]), default="words", show_default=True, help="Of what is said."
)
@click.option("--verbose", is_flag=True, help="Say more.")
def extender(
    kubeconfig: Path | None,
    context: str,
    policy: str,
    keep: str,
    cap: float | None,
    listen: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    client_ca: Path | None,
    token_file: Path | None,
    http: str,
    probes: str,
    assume: float,
    publish_watts: bool,
    weight: int,
    scheduler_kubeconfig: Path | None,
    print_config: bool,
    log_format: str,
    verbose: bool,
) -> None:
    """Answer kube-scheduler's questions about nodes, until it is ended: which of those that passed its own filters
    keep within watts (of the node, its TDP, the cluster), and which of them cost the least by the policy.

    All hard rules of Kubernetes hold. With --keep 1 the policy alone chooses among the nodes that passed them, and
    kube-scheduler's own preferences count only for pods that state some (preferred affinity, ScheduleAnyway): those
    get all nodes, with scores. With --keep all every pod does, at the price of a second question.

    It listens to this machine alone unless there is a token, or TLS with --client-ca.

    \b
    Examples:
      wattloom kubernetes extender --print-config --scheduler-kubeconfig /etc/kubernetes/scheduler.conf
      wattloom kubernetes extender --policy least-joules
      wattloom kubernetes extender --keep all --cap 40000
    """
    from wattloom.cli.structured_log import set_up_logging
    from wattloom.errors import InputError, MissingExtra

    try:
        from wattloom.kubernetes.client.kubeconfig import target_of
        from wattloom.kubernetes.extender.config import scheduler_config
        from wattloom.kubernetes.extender.extender import Options, kept, run
        from wattloom.kubernetes.options import usable_policy
        from wattloom.serving.access import read_token, server_encryption
    except ModuleNotFoundError as missing:
        if missing.name not in ("httptools", "yaml"):
            raise
        raise MissingExtra("wattloom kubernetes", "kubernetes") from None

    if (tls_cert is None) != (tls_key is None):
        raise InputError("tls-key", "--tls-cert and --tls-key belong together")
    if client_ca is not None and tls_cert is None:
        raise InputError("client-ca", "needs --tls-cert and --tls-key")
    if print_config:
        text = scheduler_config(
            listen,
            encrypted=tls_cert is not None,
            client_ca=client_ca is not None,
            token=token_file is not None,
            weight=weight,
            kubeconfig=str(scheduler_kubeconfig or ""),
        )
        say(text, nl=False)
        return
    set_up_logging(log_format, verbose=verbose)
    options = Options(
        policy=policy,
        listen=listen,
        http=http,
        probes=probes,
        keep=kept(keep),
        cap_w=cap,
        assume_s=assume,
        token=read_token(token_file) if token_file is not None else "",
        publish_watts=publish_watts,
    )
    encryption = None
    if tls_cert is not None:
        try:
            encryption = server_encryption(tls_cert, tls_key, client_ca or "")
        except OSError as problem:
            words = f"cannot be used: {problem.strerror or problem}; PEM files are needed"
            raise InputError("tls", words) from None
    usable_policy(policy)  # before anything is asked of a cluster: a wrong one is wrong everywhere
    run(target_of(kubeconfig, context), options, encryption)
