package waybill_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"waybill.dev/go"
)

func TestOneImageCopyForADecisionAndThePullAfterIt(t *testing.T) {
	s := newStore(t)
	copy := waybill.ImageCopy{Image: image}
	if d := s.MustAttemptPull(copy, withSecrets(secret)); !d.Pull() {
		t.Errorf("absent: %v", d)
	}
	pull, err := s.RecordPullIntent(copy)
	must(t, err)
	copy.ImageRef = ref
	credentials := waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}}
	must(t, s.RecordImagePulled(waybill.PulledImage{ImageCopy: copy, Credentials: &credentials, Pull: pull}))
	if there, err := s.HasIntent(copy); there || err != nil {
		t.Errorf("the intent: %t, %v", there, err)
	}
	if d := s.MustAttemptPull(copy, withSecrets(secret)); d.Pull() {
		t.Errorf("the tenant: %v", d)
	}
	must(t, s.DeleteRecord(copy))
	wantCode(t, second(s.GetRecord(copy)), waybill.ErrNotFound)
}

func TestTheOtherFieldAloneIsRefused(t *testing.T) {
	s := newStore(t)
	onlyRef, onlyImage := waybill.ImageCopy{ImageRef: ref}, waybill.ImageCopy{Image: image}
	for i, err := range []error{
		second(s.RecordPullIntent(onlyRef)), s.RecordImagePullFailed(onlyRef, waybill.PullFailed, 0),
		s.PutIntent(onlyRef), s.DeleteIntent(onlyRef), second(s.HasIntent(onlyRef)),
		s.DeleteRecord(onlyImage), second(s.GetRecord(onlyImage)),
		s.RecordImagePulled(waybill.PulledImage{ImageCopy: onlyImage}),
	} {
		if !errors.Is(err, waybill.ErrInvalidArgument) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestDecisionsInTestsOfUsers(t *testing.T) {
	pull := waybill.NewDecision(true, waybill.CheckMustAuthenticate, waybill.ReasonNoCredentialMatches)
	use := waybill.NewDecision(false, waybill.CheckCredentialRecordFound, waybill.ReasonSecretHashMatches)
	if !pull.Pull() || use.Pull() {
		t.Errorf("%v, %v", pull, use)
	}
	for want, got := range map[string]any{
		"pull: noCredentialMatches":           pull,
		"use present: secretHashMatches":      &use,
		"pull: " + waybill.Reason(0).String(): waybill.Decision{},
	} {
		if fmt.Sprint(got) != want {
			t.Errorf("%v, not %s", got, want)
		}
	}
}

func TestACauseIsStillACancelledContext(t *testing.T) {
	why := errors.New("the node shuts down")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	_, err := waybill.Open(ctx, optionsIn(scratch(t)))
	for _, want := range []error{waybill.ErrInterrupted, why, context.Canceled} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}
