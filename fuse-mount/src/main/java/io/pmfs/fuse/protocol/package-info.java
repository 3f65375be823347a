/**
 * The kernel's FUSE messages: what a request contains, how an answer is written, how long it took.
 *
 * <p><b>Start reading</b> at {@link KernelRequest} and {@link KernelReply}, a worker's view of its
 * current request and its answer. {@link KernelChannel} fetches and sends bytes without
 * interpreting them. {@link Opcode} lists the operations, {@link KernelProtocol} and {@link
 * ChangeProtocol} are the numbers and layouts of linux/fuse.h. {@link RequestLatencies} counts
 * durations; {@link RequestListener} receives an {@link AnsweredRequest}, which is an {@link
 * AskedRequest} and its outcome.
 *
 * <p><b>Threads.</b> The package starts none. A request and its reply belong to one worker. Another
 * thread may inspect a worker's current request without a lock: see the INVARIANT of {@link
 * KernelRequest}. {@link RequestLatencies} takes no lock. {@link AnswerBuffers} has one, which is
 * innermost. A {@link RequestListener} must not wait or throw, because it is called by workers.
 *
 * <p><b>How an answer is sent.</b> {@link KernelReply} is the {@code ReadSink} of a read. An answer
 * of one piece is sent without copying: from a file or a mapping through a pipe, from a buffer by
 * writev(2). Otherwise pieces are collected in the worker's buffer, which grows to the largest
 * request and is passed to later workers when its worker ends. A request is answered at most once.
 *
 * <p><b>Trust.</b> The kernel is trusted, but a message may be truncated: every access is bounded
 * by the bytes received, and fails with EINVAL beyond them. Sizes and offsets of requests are not
 * checked here; the file system clamps them. Names are bytes up to a NUL.
 */
@NullMarked
package io.pmfs.fuse.protocol;

import org.jspecify.annotations.NullMarked;
