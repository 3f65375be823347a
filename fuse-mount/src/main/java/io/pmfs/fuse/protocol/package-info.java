/**
 * The kernel's FUSE messages: what a request contains, how an answer is written, how long it took.
 *
 * <p><b>Start reading</b> at {@link KernelRequest} and {@link KernelReply}, a worker's view of its
 * current request and its answer. {@link KernelChannel} fetches and sends bytes without knowing
 * either. {@link Opcode} is what can be asked, {@link KernelProtocol} and {@link ChangeProtocol}
 * are the numbers and layouts of linux/fuse.h. {@link RequestLatencies} counts durations; {@link
 * RequestListener} receives an {@link AnsweredRequest}, which is an {@link AskedRequest} and its
 * outcome.
 *
 * <p><b>Threads.</b> The package starts none. A request and its reply belong to one worker. Another
 * thread may look at the request that a worker is busy with, without a lock: the INVARIANT of
 * {@link KernelRequest} says how it notices that it read two different ones. {@link
 * RequestLatencies} takes no lock. {@link AnswerBuffers} has one, which is innermost. A {@link
 * RequestListener} must not wait or throw, because it is called by workers.
 *
 * <p><b>How an answer is sent.</b> {@link KernelReply} is the {@code ReadSink} of a read. One piece
 * that makes up the whole answer goes without copying: from a file or a mapping through a pipe,
 * from a buffer by writev(2). Otherwise pieces are collected in the worker's buffer, which grows to
 * the largest request and is given to later workers when its worker ends. A request is answered at
 * most once.
 *
 * <p><b>What the kernel is allowed to do.</b> It is trusted, but a message may be cut short: every
 * access is bounded by the bytes that were received, and fails with EINVAL. Sizes and offsets of
 * requests are not checked here; the file system clamps them. Names are bytes up to a NUL.
 */
@NullMarked
package io.pmfs.fuse.protocol;

import org.jspecify.annotations.NullMarked;
