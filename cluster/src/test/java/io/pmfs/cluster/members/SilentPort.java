package io.pmfs.cluster.members;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;

/** A port of this machine from which a connection gets no answer: its queue is full. */
final class SilentPort implements AutoCloseable {
  /** The kernel takes one more than it is told to. */
  private static final int FULL = 2;

  private final ServerSocket socket = new ServerSocket();
  private final List<SocketChannel> queued = new ArrayList<>();

  SilentPort(InetSocketAddress address) throws IOException {
    socket.bind(address, FULL - 1);
    for (int i = 0; i < FULL; i++) {
      queued.add(SocketChannel.open(socket.getLocalSocketAddress()));
    }
  }

  InetSocketAddress address() {
    return (InetSocketAddress) socket.getLocalSocketAddress();
  }

  @Override
  public void close() throws IOException {
    for (SocketChannel each : queued) {
      each.close();
    }
    socket.close();
  }
}
