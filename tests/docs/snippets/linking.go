// What the Go of docs/linking.md leaves to its reader. See linking.cc.

package main

import (
	"context"

	"waybill.dev/go"
)

func decide(ctx context.Context, images []waybill.ImageOnNode, image, imageRef, handler string,
	fetchCredentials func() (waybill.PodCredentials, error)) (waybill.Decision, error) {
	// go-1
	_ = store
	return decision, err
}

func main() {}
