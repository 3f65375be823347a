/**
 * The places of pmfs on disk: tiers, state, sources. {@link io.pmfs.places.OwnPath} is the only way
 * to a directory by name: it trusts no component that another user can change.
 */
@NullMarked
package io.pmfs.places;

import org.jspecify.annotations.NullMarked;
