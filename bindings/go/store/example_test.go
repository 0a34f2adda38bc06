package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

// The first pull of a private image, and who may use it afterwards.
func Example() {
	directory, err := os.MkdirTemp("", "waybill-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	ctx := context.Background()
	s, err := store.Open(store.Options{
		Directory:  filepath.Join(directory, "store"),
		LossMarker: filepath.Join(directory, "marker"),
		// The runtime's list: what came to the node before waybill did.
		Images: []waybill.ListedImage{{ID: "sha256:4c0f", RepoTags: []string{"docker.io/library/nginx:1.27"}}},
	})
	if err != nil {
		panic(err)
	}
	defer s.Close()

	const image, imageRef = "registry.example.com/team-a/app:v1", "sha256:0f3a"
	hash, err := store.HashCredentials("team-a", "secret", "")
	if err != nil {
		panic(err)
	}
	ours := []waybill.Secret{{UID: "b7a3d7f0", Namespace: "team-a", Name: "registry", Hash: hash}}
	decide := func(copy store.ImageCopy, secrets []waybill.Secret) {
		fmt.Println(s.Decide(copy, store.PodCredentials{Secrets: secrets}))
	}

	// The image is not on the node, so it must be pulled. The intent is on disk before the pull begins.
	decide(store.ImageCopy{Image: image}, ours)
	begun, err := s.BeginPull(ctx, waybill.BeginPull{Image: image})
	if err != nil {
		panic(err)
	}
	// … the container runtime pulls, with the secret …
	err = s.EndPull(ctx, waybill.EndPull{Image: image, ImageRef: imageRef, Pull: begun.Pull,
		Outcome: waybill.OutcomePulled, Credentials: &waybill.PulledWith{Secrets: ours}})
	if err != nil {
		panic(err)
	}

	decide(store.ImageCopy{Image: image, ImageRef: imageRef}, ours)
	decide(store.ImageCopy{Image: image, ImageRef: imageRef}, nil)
	decide(store.ImageCopy{Image: "nginx:1.27", ImageRef: "sha256:4c0f"}, nil)
	// Output:
	// pull: imageAbsent
	// use: secretHashMatches
	// pull: noCredentialMatches
	// use: policyKnownPreloaded
}
