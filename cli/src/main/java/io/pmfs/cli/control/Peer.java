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
 * The user whose daemon must answer at a control socket: the owner of its directory. In a directory
 * of another user the socket's name may lead to any socket, also to one of root's. So the kernel is
 * asked who listens, before anything is sent.
 */
final class Peer extends ChannelDuplexHandler {
  /** Null if it is this process's own user: nobody else can have made the socket. */
  private final @Nullable UserPrincipal stranger;

  private boolean isKnown;

  private Peer(@Nullable UserPrincipal stranger) {
    this.stranger = stranger;
  }

  /** The user of a control socket. */
  static Peer of(Path socket) {
    try {
      UserPrincipal owner = Files.getOwner(socket.resolveSibling(""), LinkOption.NOFOLLOW_LINKS);
      boolean isOwn = owner.equals(Files.getOwner(Path.of("/proc/self")));
      return new Peer(isOwn ? null : owner);
    } catch (IOException e) {
      return new Peer(null); // there is no such directory, so nobody answers
    }
  }

  boolean isStranger() {
    return stranger != null;
  }

  /** Sends nothing to anybody else. */
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
