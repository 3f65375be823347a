/**
 * A writable mount on several nodes: one, the owner, has the names and the journal, the others ask
 * it.
 *
 * <p>On the others, {@link io.pmfs.writable.remote.RemoteFileSystem} is the mount: what it does not
 * do itself, by {@code KeptContent} or {@code SourceReads}, it writes into a message that {@code
 * Owner} brings to the owner. There {@link io.pmfs.writable.remote.OwnerServer} knows who asks, and
 * {@code OwnerRequest} reads the message and calls the mount. The owner asks for the content that
 * another node keeps by {@link io.pmfs.writable.remote.RemoteNodes}, and {@link
 * io.pmfs.writable.remote.NodeServer} answers there.
 *
 * <p>A new operation is a constant of {@code OwnerRequest} and a method that asks. {@code
 * MessageTest} says what {@code Message.VERSION} is then.
 */
@NullMarked
package io.pmfs.writable.remote;

import org.jspecify.annotations.NullMarked;
