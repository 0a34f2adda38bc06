// The values that histories are made of: few, so that they meet again and again.

#ifndef WAYBILL_TESTS_MODEL_DRAWN_VALUES_H_
#define WAYBILL_TESTS_MODEL_DRAWN_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/model.h"

namespace waybill::testing {

const std::vector<std::string>& Refs();

// The image that the ref is of, as the runtime lists it, without tags.
ListedImage ImageOfRef(const std::string& ref);

const KnownImage& DrawImage(Draw& draw);
ImagePullSecret DrawSecret(Draw& draw);
// Mostly 0 to 3, sometimes up to 120, with duplicates.
std::vector<ImagePullSecret> DrawSecrets(Draw& draw);
// nullopt: unknown.
std::optional<ImagePullCredentials> DrawCredentials(Draw& draw);
ModelPod DrawPod(Draw& draw);
ModelPolicy DrawPolicy(Draw& draw);
ProofTerms DrawTerms(Draw& draw, Timestamp now);
ImagePulledRecord DrawRecord(Draw& draw, Timestamp now);
std::vector<ListedImage> DrawImagesOnNode(Draw& draw);
std::vector<std::string> DrawRefs(Draw& draw);
// A few minutes, an hour, or for ever.
std::chrono::seconds DrawMaxAge(Draw& draw);
// What is to be forgotten, as a caller says it; with a handler, for an image.
Revocation DrawRevocation(Draw& draw, const std::string& handler);
ExistingCredentials DrawTruth(Draw& draw);

// Runtime handlers (drawn_handlers.cc).
const std::vector<std::string>& HandlerNames();
// Valid; mostly a default one and others.
std::vector<RuntimeHandler> DrawHandlers(Draw& draw);
// A default handler, perhaps without a name.
RuntimeHandler DrawDefaultHandler(Draw& draw);
// Others beside it.
std::vector<RuntimeHandler> DrawHandlersBeside(Draw& draw, const RuntimeHandler& its_default);
// Invalid.
std::vector<RuntimeHandler> DrawBadHandlers(Draw& draw);
PulledManifest DrawAnyManifest(Draw& draw);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_DRAWN_VALUES_H_
