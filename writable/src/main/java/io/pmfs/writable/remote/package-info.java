/** A writable mount on several nodes: one has the names and the journal, the others ask it. */
@NullMarked
package io.pmfs.writable.remote;

import org.jspecify.annotations.NullMarked;
