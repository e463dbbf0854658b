"""Who reaches the driver's ports, which are open to every user of the machine."""

import socket
import struct

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# Of Spark's network protocol: a request to be answered, with the number 7 and a body of 8 bytes.
_RPC_REQUEST = bytes([3]) + struct.pack(">qi", 7, 8) + bytes(8)


def test_the_driver_hears_nobody_without_its_secret(session: SparkSession) -> None:
    """Otherwise it would take the body for a Java object, and make that."""
    port = int(session.sparkContext.getConf().get("spark.driver.port") or 0)
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
        stranger.sendall(struct.pack(">q", 8 + len(_RPC_REQUEST)) + _RPC_REQUEST)
        while b"Exception" not in answer and (more := stranger.recv(4096)):
            answer += more
    assert b"ObjectInputStream" not in answer
    assert b"Expected SaslMessage" in answer
