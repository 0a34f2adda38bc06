package waybill_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"waybill.dev/go"
)

// The first pull of a private image, and who may use it afterwards.
func Example() {
	directory, err := os.MkdirTemp("", "waybill-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	store, err := waybill.Open(context.Background(), waybill.Options{
		Directory: filepath.Join(directory, "store"),
		Witness:   waybill.WitnessAt(filepath.Join(directory, "witness")),
		// The runtime's list: what came to the node before waybill did.
		ImagesOnNode: []waybill.ImageOnNode{{ID: "sha256:4c0f", RepoTags: []string{"docker.io/library/nginx:1.27"}}},
	})
	if err != nil {
		panic(err)
	}
	defer store.Close()

	const image, imageRef = "registry.example.com/team-a/app:v1", "sha256:0f3a"
	hash, err := waybill.HashCredentials(waybill.AuthConfig{Username: "team-a", Password: "secret"})
	if err != nil {
		panic(err)
	}
	ours := waybill.ImagePullSecret{UID: "b7a3d7f0", Namespace: "team-a", Name: "registry", CredentialHash: hash}

	// The image is not on the node, so it must be pulled. The intent is on disk before the pull begins.
	decision := store.MustAttemptPull(waybill.ImageCopy{Image: image}, waybill.PodCredentials{Secrets: []waybill.ImagePullSecret{ours}})
	fmt.Println(decision.Pull(), decision.Reason)
	pull, err := store.RecordPullIntent(waybill.ImageCopy{Image: image})
	if err != nil {
		panic(err)
	}
	// … the container runtime pulls, with the secret …
	err = store.RecordImagePulled(waybill.PulledImage{
		ImageCopy:   waybill.ImageCopy{Image: image, ImageRef: imageRef},
		Credentials: &waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{ours}},
		Pull:        pull,
	})
	if err != nil {
		panic(err)
	}

	decision = store.MustAttemptPull(waybill.ImageCopy{Image: image, ImageRef: imageRef}, waybill.PodCredentials{Secrets: []waybill.ImagePullSecret{ours}})
	fmt.Println(decision.Pull(), decision.Reason)
	decision = store.MustAttemptPull(waybill.ImageCopy{Image: image, ImageRef: imageRef}, waybill.PodCredentials{})
	fmt.Println(decision.Pull(), decision.Reason)
	decision = store.MustAttemptPull(waybill.ImageCopy{Image: "nginx:1.27", ImageRef: "sha256:4c0f"}, waybill.PodCredentials{})
	fmt.Println(decision.Pull(), decision.Reason)
	// Output:
	// true imageAbsent
	// false secretHashMatches
	// true noCredentialMatches
	// false policyKnownPreloaded
}
