package kubelet

import (
	"context"
	"errors"
	"fmt"
	"testing"

	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/credentialprovider"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
	"waybill.dev/go/kubelet/internal/registry"
)

const (
	private   = "registry.example/a/app:v1"
	privateID = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"
	manifest  = "sha256:00000000000000000000000000000000000000000000000000000000000000bb"
)

// asked is a registry by the passwords that it takes.
type asked struct {
	answers   map[string]registry.Answer
	questions []string // "password digest"
}

func (a *asked) ask(ctx context.Context, image, digest string, credential registry.Credential) (registry.Answer, error) {
	if _, bounded := ctx.Deadline(); !bounded || image != private {
		panic("an unbounded question, or one for " + image)
	}
	a.questions = append(a.questions, credential.Password+" "+digest)
	answer := a.answers[credential.Password]
	if answer == registry.Unknown {
		return answer, errors.New("the registry is down")
	}
	return answer, nil
}

func trackedSecret(uid, password string) credentialprovider.TrackedAuthConfig {
	return credentialprovider.TrackedAuthConfig{
		AuthConfig: credentialprovider.AuthConfig{Username: "a", Password: password}, AuthConfigHash: "hash of " + password,
		Source: &credentialprovider.CredentialSource{Secret: &credentialprovider.SecretCoordinates{UID: uid, Namespace: "a", Name: "pull"}},
	}
}

func imagePullSecret(of credentialprovider.TrackedAuthConfig) kubeletconfig.ImagePullSecret {
	at := of.Source.Secret
	return kubeletconfig.ImagePullSecret{UID: at.UID, Namespace: at.Namespace, Name: at.Name, CredentialHash: of.AuthConfigHash}
}

// pullsAs does what the kubelet's pullImage does.
func pullsAs(t *testing.T, manager *ImagePullManager, all []credentialprovider.TrackedAuthConfig, used *credentialprovider.TrackedAuthConfig) error {
	t.Helper()
	ctx, err := RecordPullIntent(klog.NewContext(t.Context(), logr.Discard()), manager, private)
	must(t, err)
	ctx, used, err = CheckPull(ctx, manager, private, privateID, all, used, nil)
	if err != nil {
		manager.RecordImagePullFailed(ctx, private)
		return err
	}
	credentials := &kubeletconfig.ImagePullCredentials{NodePodsAccessible: used == nil}
	if used != nil {
		credentials.KubernetesSecrets = []kubeletconfig.ImagePullSecret{imagePullSecret(*used)}
	}
	manager.RecordImagePulled(ctx, private, privateID, credentials)
	return nil
}

func askingManager(t *testing.T, a *asked, check RegistryCheck) *ImagePullManager {
	t.Helper()
	images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:cc", pause)}}
	_, manager := newManager(t, waybill.RulesClosed, images)
	must(t, AskRegistries(check)(manager))
	manager.ask = a.ask
	manager.lists.beforeFirstPull(t.Context())
	images.images = append(images.images, kubecontainer.Image{ID: privateID, RepoTags: []string{private},
		RepoDigests: []string{"registry.example/another@" + privateID, "registry.example/a/app@" + manifest}})
	return manager
}

// Where a mirror asks for no credentials every pull succeeds, and shows the first of the pod's.
func TestTheRegistryIsAsked(t *testing.T) {
	first, second, stranger := trackedSecret("1", "first"), trackedSecret("2", "second"), trackedSecret("3", "garbage")
	both := []credentialprovider.TrackedAuthConfig{first, second}
	for name, test := range map[string]struct {
		answers   map[string]registry.Answer
		all       []credentialprovider.TrackedAuthConfig
		refused   bool
		opens     []credentialprovider.TrackedAuthConfig
		questions string
	}{
		"it takes the Secret": {answers: map[string]registry.Answer{"first": registry.Yes}, all: both[:1],
			opens: both[:1], questions: "[first " + manifest + "]"},
		"it takes the second Secret only": {answers: map[string]registry.Answer{"first": registry.No, "second": registry.Yes}, all: both,
			opens: both[1:], questions: "[first " + manifest + " second " + manifest + "]"},
		"it takes no Secret": {answers: map[string]registry.Answer{"first": registry.No, "second": registry.No}, all: both, refused: true,
			questions: "[first " + manifest + " second " + manifest + "]"},
		"it is down":                      {all: both[:1], opens: both[:1], questions: "[first " + manifest + "]"},
		"it refuses one, and is down":     {answers: map[string]registry.Answer{"first": registry.No}, all: both, opens: both[:1], questions: "[first " + manifest + " second " + manifest + "]"},
		"it is down, and takes the other": {answers: map[string]registry.Answer{"second": registry.Yes}, all: both, opens: both[1:], questions: "[first " + manifest + " second " + manifest + "]"},
		"nobody is refused": {answers: map[string]registry.Answer{"": registry.Yes},
			opens: []credentialprovider.TrackedAuthConfig{stranger}, questions: "[ " + manifest + "]"},
		"no Secret, and it wants one": {answers: map[string]registry.Answer{"": registry.No}, refused: true, questions: "[ " + manifest + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asked{answers: test.answers}
			manager := askingManager(t, a, RegistryCheck{})
			var used *credentialprovider.TrackedAuthConfig
			if len(test.all) > 0 {
				used = &test.all[0]
			}
			err := pullsAs(t, manager, test.all, used)
			if (err != nil) != test.refused {
				t.Errorf("the pull: %v", err)
			}
			same(t, "questions", a.questions, test.questions)
			for _, pod := range []credentialprovider.TrackedAuthConfig{first, second, stranger} {
				open := !mustPull(t, manager, private, privateID, credentialsOf(imagePullSecret(pod)))
				want := false
				for _, opener := range test.opens {
					want = want || opener.AuthConfigHash == pod.AuthConfigHash
				}
				// An image for everybody needs no Secret.
				want = want || name == "nobody is refused"
				if open != want {
					t.Errorf("open to %s: %v", pod.Password, open)
				}
			}
		})
	}
}

func TestTheRegistryIsNotAsked(t *testing.T) {
	secret := trackedSecret("1", "first")
	all := []credentialprovider.TrackedAuthConfig{secret}
	a := &asked{}
	manager := askingManager(t, a, RegistryCheck{MayBeMirrored: func(image string) bool { return image != private }})
	must(t, pullsAs(t, manager, all, &all[0]))
	failed := errors.New("the pull failed")
	manager.check.MayBeMirrored = nil
	if _, _, err := CheckPull(t.Context(), manager, private, "", all, nil, failed); err != failed {
		t.Errorf("after a pull that failed: %v", err)
	}
	_, silent := newManager(t, waybill.RulesClosed, &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:cc", pause)}})
	silent.ask = a.ask
	must(t, pullsAs(t, silent, all, &all[0]))
	same(t, "questions", a.questions, "[]")
}

func TestRegistryCheckOfEnvironment(t *testing.T) {
	store := openTestStore(t, waybill.Options{})
	for value, want := range map[string]bool{"": false, "off": false, "on": true} {
		t.Setenv(checkVariable, value)
		manager, err := NewImagePullManager(store, &runtimeImages{}, RegistryCheckOfEnvironment())
		must(t, err)
		same(t, "asks with "+value, manager.check != nil, want)
	}
	t.Setenv(checkVariable, "true")
	if _, err := NewImagePullManager(store, &runtimeImages{}, RegistryCheckOfEnvironment()); err == nil {
		t.Error("a typo means off")
	}
}

// A digest that the runtime does not say, or not as the only one, is not asked for.
func TestWhichManifestIsAskedFor(t *testing.T) {
	manager := askingManager(t, &asked{}, RegistryCheck{})
	images := manager.imageService.(*runtimeImages)
	at := len(images.images) - 1
	for _, test := range []struct {
		image, ref string
		digests    []string
		want       string
	}{
		{private, privateID, []string{"registry.example/a/app@" + manifest}, manifest},
		{private, privateID, []string{"registry.example/a/app@" + manifest, "registry.example/a/app@" + privateID}, ""},
		{private, privateID, []string{"mirror.example/a/app@" + manifest}, ""},
		{private, "sha256:other", []string{"registry.example/a/app@" + manifest}, ""},
		{"registry.example/a/app@" + privateID, privateID, []string{"registry.example/a/app@" + manifest}, ""}, // it says it itself
		{"app", privateID, []string{"docker.io/library/app@" + manifest}, manifest},
		{private, privateID, nil, ""},
	} {
		images.images[at].RepoDigests = test.digests
		same(t, fmt.Sprint(test), manager.digestOf(t.Context(), test.image, test.ref), test.want)
	}
}
