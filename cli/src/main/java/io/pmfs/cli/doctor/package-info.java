/** {@code pmfs doctor}: what a machine and a mount need, looked over one by one. */
@NullMarked
package io.pmfs.cli.doctor;

import org.jspecify.annotations.NullMarked;
