/** What needs a mount, root or a real kernel, and the rules of the house. */
@NullMarked
package io.pmfs.it;

import org.jspecify.annotations.NullMarked;
