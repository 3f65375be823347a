/**
 * The members of a cluster: how nodes find each other, prove that they know the secret, and learn
 * of views. Knows nothing of files.
 */
@NullMarked
package io.pmfs.cluster.members;

import org.jspecify.annotations.NullMarked;
