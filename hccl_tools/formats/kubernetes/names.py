"""The names and sizes that Kubernetes accepts: of a ConfigMap, its namespace and keys, and of a job.

Source: Kubernetes, apimachinery/pkg/util/validation (``IsDNS1123Subdomain``, ``IsDNS1123Label``,
``IsConfigMapKey``), apimachinery/pkg/api/resource (quantities).
"""

from __future__ import annotations

import re
from shlex import quote

from hccl_tools.errors import UsageError
from hccl_tools.records import NamedTuple

#: The greatest lengths, in characters.
_NAME_LENGTH, _NAMESPACE_LENGTH, _KEY_LENGTH = 253, 63, 253
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
#: A size in bytes; and the spelling of docker, which Kubernetes does not read or reads as another size.
_SIZE = re.compile(r"[1-9][0-9]{0,8}[MGT]i")
_DOCKER_SIZE = re.compile(r"([1-9][0-9]{0,8})([mgt])i?b?", re.IGNORECASE)
_SUBDOMAIN_RULE = (
    "Kubernetes requires an RFC 1123 subdomain: lower case letters, digits, - and ., each part between dots "
    f"begins and ends with a letter or digit, at most {_NAME_LENGTH} characters"
)
_LABEL_RULE = (
    "Kubernetes requires an RFC 1123 label: lower case letters, digits and -, it begins and ends with a "
    f"letter or digit, at most {_NAMESPACE_LENGTH} characters"
)
_KEY_RULE = f"a key has letters, digits, -, _ and ., does not begin with .., at most {_KEY_LENGTH} characters"


class ConfigMapName(NamedTuple):
    """The names of a new ConfigMap; without a namespace it gets that of the ``kubectl`` command."""

    name: str
    key: str
    namespace: str | None = None


def checked(name: str, *, key: str, namespace: str | None = None) -> ConfigMapName:
    """Return the names of a ConfigMap with a table.

    Raises:
        UsageError: Kubernetes refuses a name, or HCCL does not open a file with the name of the key.
    """
    if not _is_subdomain(name):
        raise UsageError(f'--to-configmap "{name}" is not the name of a ConfigMap', hint=_SUBDOMAIN_RULE)
    if namespace is not None:
        check_namespace(namespace)
    if len(key) > _KEY_LENGTH or key.startswith("..") or not _KEY.fullmatch(key):
        raise UsageError(f'--key "{key}" is not a key of a ConfigMap', hint=_KEY_RULE)
    if not key.endswith(".json"):
        reason = "a pod sees it as a file name, and HCCL opens only files whose name ends in .json"
        raise UsageError(f'--key "{key}": {reason}', hint=f"use --key {key}.json")
    return ConfigMapName(name, key, namespace)


def _is_subdomain(name: str) -> bool:
    return len(name) <= _NAME_LENGTH and all(map(_LABEL.fullmatch, name.split(".")))


def check_queue(name: str) -> None:
    """Refuse what is not the name of a queue of Volcano.

    Raises:
        UsageError: Kubernetes refuses the name.
    """
    if not _is_subdomain(name):
        raise UsageError(f'--queue "{name}" is not the name of a queue', hint=_SUBDOMAIN_RULE)


def check_image(name: str) -> None:
    """Refuse what cannot be the name of an image; kubelet and the registry check the rest.

    Only the registry and the tag may have capital letters (distribution/reference). The first part is a
    registry if it has a dot, a colon or capital letters, or is localhost.

    Raises:
        UsageError: The name has blanks, characters that are not printed, a scheme, or capital letters.
    """
    scheme, mark, rest = name.partition("://")
    if mark:
        raise UsageError(
            f'--image "{name}" begins with {scheme}://, which no image has in its name',
            hint=f"leave it out: --image {quote(rest)}",
        )
    if any(sign.isspace() or not sign.isprintable() for sign in name):
        raise UsageError(
            f'--image "{name}" has blanks or unprintable characters, which no image has in its name',
            hint="an image is REGISTRY/NAME:TAG; options of a container runtime do not belong to it",
        )
    first, _, rest = name.partition("@")[0].rpartition("/")
    path = f"{first}/{rest.partition(':')[0]}".lstrip("/").split("/")
    if len(path) > 1 and (path[0] == "localhost" or set(".:").intersection(path[0]) or not path[0].islower()):
        del path[0]
    if wrong := [part for part in path if part != part.lower()]:
        raise UsageError(
            f'--image "{name}" has capital letters in {" and ".join(wrong)}',
            hint="kubelet accepts them only in the registry and the tag: REGISTRY/name:TAG",
        )


def check_shared_memory(size: str) -> None:
    """Refuse what is not a size of shared memory.

    Raises:
        UsageError: It is not, or has docker's spelling.
    """
    if not _SIZE.fullmatch(size):
        docker = _DOCKER_SIZE.fullmatch(size)
        how = (
            f"write {docker[1]}{docker[2].upper()}i" if docker else "write 64Gi; the units are Mi, Gi and Ti"
        )
        raise UsageError(f'--shm-size "{size}" is not a size', hint=how)


def check_namespace(namespace: str) -> None:
    """Refuse what is not the name of a namespace.

    Raises:
        UsageError: Kubernetes refuses the name.
    """
    if len(namespace) > _NAMESPACE_LENGTH or not _LABEL.fullmatch(namespace):
        raise UsageError(f'--namespace "{namespace}" is not the name of a namespace', hint=_LABEL_RULE)


def check_job(name: str, *, most: int, of_service: bool) -> None:
    """Refuse what is not the name of a job, whose pods and objects have longer names.

    With ``of_service`` a Service has a name that begins with it: an RFC 1035 label, up to Kubernetes 1.33 and
    later without the feature gate RelaxedServiceNameValidation.

    Raises:
        UsageError: Kubernetes refuses the name, or would refuse those that are made from it.
    """
    if len(name) > most or not _LABEL.fullmatch(name):
        rule = _LABEL_RULE.replace(f"at most {_NAMESPACE_LENGTH}", f"here at most {most}")
        raise UsageError(
            f'--object-name "{name}" is not the name of a job',
            hint=f"{rule}, because the names of its pods, Service and ConfigMap are longer",
        )
    if of_service and name[0].isdigit():
        raise UsageError(
            f'--object-name "{name}" begins with a digit',
            hint=f"begin with a letter, such as job-{name}: ascend-operator makes a Service with this name, "
            "and Kubernetes up to 1.33 refuses such a Service",
        )
