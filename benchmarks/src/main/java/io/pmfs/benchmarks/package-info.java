/** Microbenchmarks: what a choice in the code costs. */
package io.pmfs.benchmarks;
