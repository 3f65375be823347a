package io.pmfs.cli.control;

import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.channel.socket.nio.NioChannelOption;
import io.netty.util.ReferenceCountUtil;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import jdk.net.ExtendedSocketOptions;
import jdk.net.UnixDomainPrincipal;
import org.jspecify.annotations.Nullable;

/**
 * Verifies that a control socket's listener is the owner of its directory. In another user's
 * directory the name may lead to any socket, even to one of root's, so this asks the kernel who
 * listens before anything is sent.
 */
final class Peer extends ChannelDuplexHandler {
  /** Null for this process's own user, because no other user can have created the socket. */
  private final @Nullable UserPrincipal stranger;

  private boolean isKnown;

  private Peer(@Nullable UserPrincipal stranger) {
    this.stranger = stranger;
  }

  static Peer of(Path socket) {
    try {
      UserPrincipal owner = Files.getOwner(socket.resolveSibling(""), LinkOption.NOFOLLOW_LINKS);
      boolean isOwn = owner.equals(Files.getOwner(Path.of("/proc/self")));
      return new Peer(isOwn ? null : owner);
    } catch (IOException e) {
      return new Peer(null); // no such directory, so nothing listens
    }
  }

  boolean isStranger() {
    return stranger != null;
  }

  /** Sends nothing to another listener. */
  @Override
  public void write(ChannelHandlerContext context, Object message, ChannelPromise promise)
      throws Exception {
    if (stranger != null && !isKnown) {
      UnixDomainPrincipal listening =
          context
              .channel()
              .config()
              .getOption(NioChannelOption.of(ExtendedSocketOptions.SO_PEERCRED));
      isKnown = listening != null && listening.user().equals(stranger);
      if (!isKnown) {
        ReferenceCountUtil.release(message);
        IOException failure = new IOException("not a daemon of user " + stranger.getName());
        promise.setFailure(failure);
        context.fireExceptionCaught(failure);
        return;
      }
    }
    super.write(context, message, promise);
  }
}
