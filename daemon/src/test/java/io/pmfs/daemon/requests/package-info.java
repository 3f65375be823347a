@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.requests;
