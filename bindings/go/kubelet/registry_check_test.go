package kubelet

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

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
	ctx, used, err = CheckPull(ctx, manager, private, "", privateID, all, used, nil)
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

func askingManager(t *testing.T, a *asked) *ImagePullManager {
	t.Helper()
	images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:cc", pause)}}
	_, manager := newManager(t, waybill.RulesClosed, images)
	must(t, AskRegistries(RegistryCheck{})(manager))
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
			manager := askingManager(t, a)
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
	manager := askingManager(t, a)
	manager.checker = func(string, string) waybill.ProofChecker { return waybill.CheckerRegistry }
	must(t, pullsAs(t, manager, all, &all[0]))
	manager.checker = nil
	failed := errors.New("the pull failed")
	if _, _, err := CheckPull(t.Context(), manager, private, "", privateID, all, nil, failed); err != failed {
		t.Errorf("after a pull that failed: %v", err)
	}
	_, silent := newManager(t, waybill.RulesClosed, &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:cc", pause)}})
	must(t, pullsAs(t, silent, all, &all[0]))
	same(t, "questions", a.questions, "[]")
}

// The record says who checked, and until when the credential is good.
func TestAPullIsRecordedWithItsTerms(t *testing.T) {
	end := time.Unix(1_900_000_060, 0)
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1900000060}`)) + ".signature"
	for name, test := range map[string]struct {
		asks   bool
		answer registry.Answer
		by     waybill.ProofChecker // the runtime's configuration
		want   waybill.ProofChecker
	}{
		"nobody is asked":                        {want: waybill.CheckerUnknown},
		"no other host serves":                   {by: waybill.CheckerRegistry, want: waybill.CheckerRegistry},
		"a mirror serves":                        {by: waybill.CheckerMirror, want: waybill.CheckerMirror},
		"a mirror serves, the registry says yes": {asks: true, answer: registry.Yes, by: waybill.CheckerMirror, want: waybill.CheckerRegistry},
		"a mirror serves, the registry is down":  {asks: true, by: waybill.CheckerMirror, want: waybill.CheckerMirror},
		"nothing is known, and it says yes":      {asks: true, answer: registry.Yes, want: waybill.CheckerRegistry},
	} {
		t.Run(name, func(t *testing.T) {
			manager := askingManager(t, &asked{answers: map[string]registry.Answer{token: test.answer}})
			if !test.asks {
				manager.ask = nil
			}
			manager.checker = func(image, _ string) waybill.ProofChecker { return test.by }
			all := []credentialprovider.TrackedAuthConfig{trackedSecret("1", token)}
			must(t, pullsAs(t, manager, all, &all[0]))
			record, err := manager.store.GetRecord(waybill.ImageCopy{ImageRef: privateID})
			must(t, err)
			proofs := record.Proofs["registry.example/a/app"].Secrets
			if len(proofs) != 1 || proofs[0].Checker != test.want || !proofs[0].GoodUntil.Equal(end) {
				t.Errorf("%+v, want %v until %v", proofs, test.want, end)
			}
		})
	}
}

// As containerd reads it.
func TestCheckersOf(t *testing.T) {
	root := scratchDir(t)
	write := func(path, text string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o644))
	}
	write("etc/containerd/config.toml", `version = 3
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = '/etc/containerd/certs.d'
`)
	manager := &ImagePullManager{}
	must(t, checkersOf(waybill.RuntimeAnswers{Version: "containerd", Root: root})(manager))
	same(t, "without a mirror", manager.checker(private, ""), waybill.CheckerRegistry)
	write("etc/containerd/certs.d/registry.example/hosts.toml", `[host."https://mirror.example"]`)
	same(t, "with one, from the next pull on", manager.checker(private, ""), waybill.CheckerMirror)
	must(t, checkersOf(waybill.RuntimeAnswers{Version: "another", Root: root})(manager))
	same(t, "another runtime", manager.checker(private, ""), waybill.CheckerUnknown)
}

func TestRegistryCheckOfEnvironment(t *testing.T) {
	store := openTestStore(t, waybill.Options{})
	for value, want := range map[string]bool{"": false, "off": false, "on": true} {
		t.Setenv(checkVariable, value)
		manager, err := NewImagePullManager(store, &runtimeImages{}, RegistryCheckOfEnvironment())
		must(t, err)
		same(t, "asks with "+value, manager.ask != nil, want)
	}
	t.Setenv(checkVariable, "true")
	if _, err := NewImagePullManager(store, &runtimeImages{}, RegistryCheckOfEnvironment()); err == nil {
		t.Error("a typo means off")
	}
}

// A digest that the runtime does not say, or not as the only one, is not asked for.
func TestWhichManifestIsAskedFor(t *testing.T) {
	manager := askingManager(t, &asked{})
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

func TestGoodUntil(t *testing.T) {
	token := func(header, claims string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(header)) + "." + encode([]byte(claims)) + ".signature"
	}
	early, late := time.Unix(1_900_000_000, 0), time.Unix(1_900_000_060, 0)
	jwt := token(`{"alg":"RS256"}`, `{"exp":1900000060,"sub":"system:serviceaccount:a:builder"}`)
	for password, want := range map[string]time.Time{
		jwt: late,
		token(`{"alg":"RS256"}`, `{"exp":1900000000.9}`): early,
		"secret":                       {},
		"":                             {},
		token(`{"alg":"RS256"}`, `{}`): {},
		token(`{"alg":"RS256"}`, `{"exp":"tomorrow"}`): {},
		token(`{"alg":"RS256"}`, `{"exp":-1}`):         time.Unix(1, 0),
		token(`{"alg":"RS256"}`, `{"exp":0}`):          time.Unix(1, 0),
		token(`{"alg":"RS256"}`, `{"exp":1e300}`):      {},
		token(`{}`, `{"exp":1900000000}`):              {},
		token(`{"alg":"RS256"}`, `not JSON`):           {},
		"a.b.c":                                        {},
	} {
		of := credentialprovider.TrackedAuthConfig{AuthConfig: credentialprovider.AuthConfig{Password: password}}
		if got := goodUntil(&of); !got.Equal(want) {
			t.Errorf("%.60s: %v, not %v", password, got, want)
		}
	}
	both := credentialprovider.AuthConfig{Password: token(`{"alg":"none"}`, `{"exp":1900000000}`), IdentityToken: jwt}
	if got := goodUntil(&credentialprovider.TrackedAuthConfig{AuthConfig: both}); !got.Equal(early) {
		t.Errorf("what ends first counts: %v", got)
	}
	if !goodUntil(nil).IsZero() {
		t.Error("an anonymous pull ends")
	}
}

// A mirror's proof opens nothing where the policy wants the registry's.
func TestProofsByTheRegistry(t *testing.T) {
	for by, open := range map[waybill.ProofChecker]bool{waybill.CheckerMirror: false, waybill.CheckerUnknown: false, waybill.CheckerRegistry: true} {
		directory := scratchDir(t)
		images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:cc", pause)}}
		store, err := OpenStore(t.Context(), Setup{
			Directory: filepath.Join(directory, "waybill"), KubeletDirectory: directory, MapBytes: 16 << 20, NoSocket: true, ImageService: images,
			VerificationPolicy: kubeletconfig.NeverVerifyPreloadedImages, Proofs: []waybill.ProofRule{{Proofs: waybill.ProofsRegistry}},
		})
		must(t, err)
		manager, err := NewImagePullManager(store, images)
		must(t, err)
		manager.checker = func(string, string) waybill.ProofChecker { return by }
		all := []credentialprovider.TrackedAuthConfig{trackedSecret("1", "garbage")}
		must(t, pullsAs(t, manager, all, &all[0]))
		if got := !mustPull(t, manager, private, privateID, credentialsOf(imagePullSecret(all[0]))); got != open {
			t.Errorf("checked by %v: open %v", by, got)
		}
		must(t, store.Close())
	}
}
