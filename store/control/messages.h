// Requests and answers: what a client makes of a call, what an owner makes of a request, and back.
//
//   greeting   which store, as in a token (8 bytes) | OwnerDescription
//   request    the number of the call (1 byte): its place in owner.h | its arguments
//   answer     1 | the result; or 0 | Error
//
// wire.h says how a value is written.

#ifndef WAYBILL_STORE_CONTROL_MESSAGES_H_
#define WAYBILL_STORE_CONTROL_MESSAGES_H_

#include <cstdint>
#include <span>

#include "store/control/calls.h"
#include "store/control/frame.h"
#include "waybill/owner.h"

namespace waybill::internal {

// Does what the request says, and makes the answer: one to any bytes. Reading a request takes time
// and memory in proportion to its size, whatever is in it.
Bytes AnswerRequest(std::span<const std::uint8_t> request, OwnerCalls& owner);
// The answer to a request that was not read.
Bytes AnswerOf(const Error& error);

struct Greeting {
  std::uint64_t store = 0;  // as in a token
  OwnerDescription owner;
};
Bytes EncodeGreeting(const Greeting& greeting);
Result<Greeting> DecodeGreeting(std::span<const std::uint8_t> message);

// Of an answer to a request that the owner did not take: its error. kIo: it is something else.
Error DecodeRefusal(std::span<const std::uint8_t> message);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_CONTROL_MESSAGES_H_
