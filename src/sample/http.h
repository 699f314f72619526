// SPDX-License-Identifier: Apache-2.0
//
// HttpClient: sends JSON by POST, using the system's libcurl.
//
// The library is loaded at its first use, so the program needs it only for requests over the
// network (docs/decisions/014-libcurl.md).
//
//   MC_TRY(const HttpClient http, HttpClient::create(), "--endpoint");
//   MC_TRY(HttpResponse response, http.post_json({.url = url, .body = json}), "ask the model");
#ifndef MC_SAMPLE_HTTP_H_
#define MC_SAMPLE_HTTP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/result.h"

namespace mc::sample {

struct HttpRequest {
  std::string url;
  std::string body{};
  std::string bearer{};                // "" sends no Authorization header.
  std::vector<std::string> headers{};  // Additional headers, each "Name: value".
  double connect_timeout_s = 10;
  // The time from the start of the request to the last byte of the response.
  double timeout_s = 600;
};

struct HttpResponse {
  long status = 0;
  std::string content_type;
  std::string body;
  double retry_after_s = 0;  // 0 if the server does not name a time.
};

inline constexpr size_t kResponseBytesMax = 64 << 20;

// An interface that sends requests; tests replace it by a fake.
class HttpPost {
 public:
  virtual ~HttpPost() = default;
  // Sends a request.  Thread-safe.  kNotFound if no connection can be made (unknown host, or no
  // server at the port); kUnavailable if the response was incomplete; kTimeout; kInvalidInput for
  // an invalid URL.
  virtual Result<HttpResponse> post_json(const HttpRequest& request) const = 0;
};

class HttpClient final : public HttpPost {
 public:
  // kUnavailable if this machine has no libcurl.
  static Result<HttpClient> create();
  Result<HttpResponse> post_json(const HttpRequest& request) const override;
  // Connects to the server without sending anything.  Errors are those of post_json.
  Status reach(const std::string& url) const;

 private:
  HttpClient() = default;
};

}  // namespace mc::sample

#endif  // MC_SAMPLE_HTTP_H_
