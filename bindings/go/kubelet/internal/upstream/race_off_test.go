//go:build !race

package upstream

// Whether this test runs with the race detector.
const raced = false
