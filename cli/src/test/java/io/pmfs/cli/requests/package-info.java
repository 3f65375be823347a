@org.jspecify.annotations.NullMarked
package io.pmfs.cli.requests;
