/**
 * What commands share: exit statuses, errors in one line, the machine's mounts, sizes and times as
 * text.
 */
@NullMarked
package io.pmfs.machine;

import org.jspecify.annotations.NullMarked;
