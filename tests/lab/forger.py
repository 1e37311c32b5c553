#!/usr/bin/env python3
"""A machine on the path that answers each packet to an address falsely: `forger.py ADDRESS FROM` sends "port unreachable" (ICMP) from
the address FROM for each UDP packet that this machine sends to ADDRESS. The packets go their way all the same. Prints "ready", ends
with its standard input, and prints the number of its answers then.

Needs root. It runs on the machine of the sender itself, which receives the answers as if they had come from the network.
"""

import ipaddress
import select
import socket
import struct
import sys

ALL_PACKETS, IP_PACKETS = 0x0003, 0x0800
"""Only a socket for all packets receives the packets of this machine itself."""
QUOTED = 548
"""Bytes of the refused packet that Linux sends back, with its IP header."""


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def answer(refused, offender):
    """The IP packet with the ICMP message. The kernel computes the checksum of the IP header."""
    icmp = struct.pack("!BBHI", 3, 3, 0, 0) + refused[:QUOTED]
    icmp = icmp[:2] + struct.pack("!H", checksum(icmp)) + icmp[4:]
    length = 20 + len(icmp)
    return struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0, 64, socket.IPPROTO_ICMP, 0) + offender + refused[12:16] + icmp


def main():
    target, offender = (ipaddress.ip_address(word).packed for word in sys.argv[1:3])
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    sniffer.bind(("eth0", ALL_PACKETS))
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    print("ready", flush=True)
    answers = 0
    while True:
        ready, _, _ = select.select([sniffer, sys.stdin], [], [])
        if sys.stdin in ready:
            print(answers, flush=True)
            return
        packet, (_, protocol, direction, *_) = sniffer.recvfrom(65535)
        if (protocol, direction) != (IP_PACKETS, socket.PACKET_OUTGOING):
            continue
        if packet[9] == socket.IPPROTO_UDP and packet[16:20] == target:
            to = ".".join(map(str, packet[12:16]))
            sender.sendto(answer(packet, offender), (to, 0))
            answers += 1


if __name__ == "__main__":
    main()
