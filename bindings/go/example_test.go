package waybill_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"waybill.dev/go"
)

// exampleStore makes a store in a directory that is deleted when the example ends.
func exampleStore() (store *waybill.Store, done func()) {
	directory, err := os.MkdirTemp("", "waybill-example-")
	if err != nil {
		panic(err)
	}
	store, err = waybill.Open(context.Background(), waybill.Options{
		Directory:    filepath.Join(directory, "store"),
		Witness:      waybill.WitnessAt(filepath.Join(directory, "witness")),
		ImagesOnNode: []waybill.ImageOnNode{{ID: "sha256:4c0f", RepoTags: []string{"docker.io/library/nginx:1.27"}}},
	})
	if err != nil {
		panic(err)
	}
	return store, func() {
		store.Close()
		os.RemoveAll(directory)
	}
}

// The first pull of a private image, and who may use it afterwards.
func Example_firstPull() {
	store, done := exampleStore()
	defer done()

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
	// Output:
	// true imageAbsent
	// false secretHashMatches
	// true noCredentialMatches
}

func ExampleOpen() {
	directory, err := os.MkdirTemp("", "waybill-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	options := waybill.Options{
		Directory:    filepath.Join(directory, "store"),
		Witness:      waybill.WitnessAt(filepath.Join(directory, "witness")),
		ImagesOnNode: []waybill.ImageOnNode{}, // the runtime's list: nothing is there yet
	}
	store, err := waybill.Open(context.Background(), options)
	if err != nil {
		panic(err)
	}
	if _, err := store.RecordPullIntent(waybill.ImageCopy{Image: "registry.example.com/team-a/app:v1"}); err != nil {
		panic(err)
	}
	// The process ends here, so the outcome of the pull is unknown.
	if err := store.Close(); err != nil {
		panic(err)
	}

	options.ImagesOnNode = []waybill.ImageOnNode{{ID: "sha256:0f3a", RepoTags: []string{"registry.example.com/team-a/app:v1"}}}
	store, err = waybill.Open(context.Background(), options)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	report := store.RecoveryReport()
	fmt.Println("intents found:", report.IntentsFound, "closed:", report.Observed.Closed)
	decision := store.MustAttemptPull(waybill.ImageCopy{Image: "registry.example.com/team-a/app:v1", ImageRef: "sha256:0f3a"}, waybill.PodCredentials{})
	fmt.Println(decision.Pull(), decision.Reason)
	// Output:
	// intents found: 1 closed: 1
	// true entryWithoutCredentials
}

func ExampleStore_MustAttemptPull() {
	store, done := exampleStore()
	defer done()
	decision := store.MustAttemptPull(waybill.ImageCopy{Image: "nginx:1.27", ImageRef: "sha256:4c0f"}, waybill.PodCredentials{})
	fmt.Println(decision.Pull())
	fmt.Println(decision.Result)
	fmt.Println(decision.Reason.Text())
	// Output:
	// false
	// credentialPolicyAllowed
	// the image is in the ledger of preloaded ones, which the policy allows to all pods
}

// Credentials are fetched only if the answer depends on them.
func ExampleStore_MustAttemptPullLazily() {
	store, done := exampleStore()
	defer done()
	fetch := func() (waybill.PodCredentials, error) {
		return waybill.PodCredentials{}, errors.New("the API server doesn't answer")
	}
	decision, err := store.MustAttemptPullLazily(waybill.ImageCopy{Image: "app:v1", ImageRef: "sha256:0f3a"}, fetch)
	fmt.Println(decision.Pull(), decision.Result, err)

	err = store.RecordImagePulled(waybill.PulledImage{
		ImageCopy:   waybill.ImageCopy{Image: "app:v1", ImageRef: "sha256:0f3a"},
		Credentials: &waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{{UID: "1", Namespace: "a", Name: "b"}}},
	})
	if err != nil {
		panic(err)
	}
	decision, err = store.MustAttemptPullLazily(waybill.ImageCopy{Image: "app:v1", ImageRef: "sha256:0f3a"}, fetch)
	fmt.Println(decision.Pull(), decision.Result, err)
	// Output:
	// true mustAuthenticate <nil>
	// true error the API server doesn't answer
}

func ExampleStore_Prune() {
	store, done := exampleStore()
	defer done()
	for _, ref := range []string{"sha256:01", "sha256:02"} {
		err := store.RecordImagePulled(waybill.PulledImage{
			ImageCopy:   waybill.ImageCopy{Image: "nginx:1.27", ImageRef: ref},
			Credentials: &waybill.ImagePullCredentials{NodePodsAccessible: true},
		})
		if err != nil {
			panic(err)
		}
	}
	token, err := store.BeginList() // before the runtime is asked
	if err != nil {
		panic(err)
	}
	listed := []waybill.ImageOnNode{{ID: "sha256:02"}}
	report, err := store.Prune(listed, token)
	fmt.Println(report.Removed, report.KeptInList, err)
	// Output: 1 1 <nil>
}

// A list of the runtime's images says what came to the node without the kubelet.
func ExampleStore_ObserveImages() {
	store, done := exampleStore()
	defer done()
	const app = "registry.example.com/team-a/app:v1"
	pull, err := store.RecordPullIntent(waybill.ImageCopy{Image: app})
	if err != nil {
		panic(err)
	}
	// The pull is cancelled, but the runtime may finish it.
	if err := store.RecordImagePullFailed(waybill.ImageCopy{Image: app}, waybill.PullOutcomeUnknown, pull); err != nil {
		panic(err)
	}
	token, err := store.BeginList() // before the runtime is asked
	if err != nil {
		panic(err)
	}
	report, err := store.ObserveImages(waybill.ImageList{
		Images: []waybill.ImageOnNode{
			{ID: "sha256:4c0f", RepoTags: []string{"docker.io/library/nginx:1.27"}},
			{ID: "sha256:0f3a", RepoTags: []string{app}},
			{ID: "sha256:77aa", RepoTags: []string{"registry.example.com/base/pause:3.10"}},
		},
		Token: &token, Complete: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("known:", report.Known)
	for _, image := range report.Judged {
		fmt.Println(image.Name, "preloaded:", image.Preloaded)
	}
	// Output:
	// known: 1
	// registry.example.com/team-a/app:v1 preloaded: false
	// registry.example.com/base/pause:3.10 preloaded: true
}

// A Secret was deleted: what it opened must be verified again.
func ExampleStore_ForgetSecret() {
	store, done := exampleStore()
	defer done()
	app := waybill.ImageCopy{Image: "registry.example.com/team-a/app:v1", ImageRef: "sha256:0f3a"}
	ours := waybill.ImagePullSecret{UID: "b7a3d7f0", Namespace: "team-a", Name: "registry", CredentialHash: "1d03"}
	pod := waybill.PodCredentials{Secrets: []waybill.ImagePullSecret{ours}}
	pullApp := func() {
		pull, err := store.RecordPullIntent(app)
		if err != nil {
			panic(err)
		}
		err = store.RecordImagePulled(waybill.PulledImage{
			ImageCopy: app, Credentials: &waybill.ImagePullCredentials{KubernetesSecrets: pod.Secrets}, Pull: pull,
		})
		if err != nil {
			panic(err)
		}
	}
	pullApp()
	fmt.Println(store.MustAttemptPull(app, pod).Reason)

	report, err := store.ForgetSecret(waybill.CredentialName{Namespace: "team-a", Name: "registry", UID: "b7a3d7f0"})
	fmt.Println(report.Records, report.Stored, err)
	fmt.Println(store.MustAttemptPull(app, pod).Reason)

	pullApp() // proves it anew
	fmt.Println(store.MustAttemptPull(app, pod).Reason)
	// Output:
	// secretHashMatches
	// 1 true <nil>
	// entryWithoutCredentials
	// secretHashMatches
}

// After a restart: what was deleted meanwhile is forgotten.
func ExampleStore_Reconcile() {
	store, done := exampleStore()
	defer done()
	app := waybill.ImageCopy{Image: "registry.example.com/team-a/app:v1", ImageRef: "sha256:0f3a"}
	for _, name := range []string{"registry", "deleted"} {
		pull, err := store.RecordPullIntent(app)
		if err != nil {
			panic(err)
		}
		used := waybill.ImagePullSecret{UID: "uid of " + name, Namespace: "team-a", Name: name, CredentialHash: "hash of " + name}
		err = store.RecordImagePulled(waybill.PulledImage{
			ImageCopy: app, Credentials: &waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{used}}, Pull: pull,
		})
		if err != nil {
			panic(err)
		}
	}
	token, err := store.BeginList() // before the API server is asked
	if err != nil {
		panic(err)
	}
	report, err := store.Reconcile(waybill.ExistingCredentials{
		Secrets:         []waybill.CredentialName{{Namespace: "team-a", Name: "registry", UID: "uid of registry"}},
		ServiceAccounts: []waybill.CredentialName{{Namespace: "team-a", Name: "default", UID: "uid of default"}},
	}, token)
	fmt.Println(report.Known, report.Gone, report.Forgotten.Secrets, err)
	// Output: 1 1 1 <nil>
}

func ExampleStore_GetOrCreateUserNamespace() {
	store, done := exampleStore()
	defer done()
	// The runtime's handlers, from CRI's Status.
	_, err := store.ReplaceRuntimeHandlers([]waybill.RuntimeHandler{{Name: "runc", IsDefault: true, UserNamespaces: true}})
	if err != nil {
		panic(err)
	}
	hostUsers := false
	for _, pod := range []string{"pod-1", "pod-2", "pod-1"} {
		namespace, err := store.GetOrCreateUserNamespace(waybill.UserNamespaceRequest{PodUID: pod, HostUsers: &hostUsers})
		if err != nil {
			panic(err)
		}
		fmt.Println(pod, namespace.Mode, namespace.UIDs[0].Length)
	}
	_, err = store.GetUserNamespace("pod-3")
	fmt.Println(errors.Is(err, waybill.ErrNotFound))
	// Output:
	// pod-1 POD 65536
	// pod-2 POD 65536
	// pod-1 POD 65536
	// true
}

func ExampleError() {
	_, err := waybill.NewVerificationPolicy(waybill.AlwaysVerify, []string{"nginx"}, waybill.AllowlistAnyImage)
	var e *waybill.Error
	fmt.Println(errors.As(err, &e), e.Code, errors.Is(err, waybill.ErrInvalidArgument))
	// Output: true invalidArgument true
}
