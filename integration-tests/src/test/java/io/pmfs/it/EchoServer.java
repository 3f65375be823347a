package io.pmfs.it;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;

/** Sends back what is sent to it, one connection after the other; runs inside a container. */
final class EchoServer {
  private EchoServer() {}

  public static void main(String[] arguments) throws IOException {
    try (ServerSocket listening = new ServerSocket(Integer.parseInt(arguments[0]))) {
      while (true) {
        try (Socket socket = listening.accept()) {
          socket.getInputStream().transferTo(socket.getOutputStream());
        } catch (IOException e) {
          // That connection is lost, and the next one is waited for.
        }
      }
    }
  }
}
