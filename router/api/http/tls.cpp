// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <sys/stat.h>

#include <boost/asio/ssl.hpp>
#include <utility>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
using boost::system::error_code;

class TlsSocket final : public ClientSocket {
 public:
  TlsSocket(asio::ip::tcp::socket socket, std::shared_ptr<ssl::context> context)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {}

  void async_handshake(Handler handler) override {
    stream_.async_handshake(
        ssl::stream_base::server,
        [handler = std::move(handler)](const error_code& ec) { handler(ec, 0); });
  }
  void async_read_some(asio::mutable_buffer buffer, Handler handler) override {
    stream_.async_read_some(buffer, std::move(handler));
  }
  /// A record that the socket takes in part would have to be kept: async_write_some() does that.
  std::size_t write_now(asio::const_buffer) override { return 0; }
  void async_write_some(asio::const_buffer buffer, Handler handler) override {
    stream_.async_write_some(buffer, std::move(handler));
  }
  void async_shut_down_send(Handler handler) override {
    stream_.async_shutdown(
        [handler = std::move(handler)](const error_code& ec) { handler(ec, 0); });
  }
  asio::ip::tcp::socket& tcp() override { return stream_.next_layer(); }

 private:
  std::shared_ptr<ssl::context> context_;
  ssl::stream<asio::ip::tcp::socket> stream_;
};

class Context final : public TlsContext {
 public:
  explicit Context(std::shared_ptr<ssl::context> context) : context_(std::move(context)) {}
  std::unique_ptr<ClientSocket> accept(asio::ip::tcp::socket socket) const override {
    return std::make_unique<TlsSocket>(std::move(socket), context_);
  }

 private:
  std::shared_ptr<ssl::context> context_;
};

/// The one protocol that there is; a client that offers others alone goes on without ALPN.
int choose_http_1_1(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned int size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof kHttp11 - 1, offered, size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Status bad_file(std::string_view what, const std::string& path, const error_code& ec) {
  return invalid_argument(
      str_cat("the TLS ", what, " ", quoted(path, 200), " cannot be used: ", ec.message()));
}

Status check_key_mode(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return not_found(str_cat("there is no TLS key ", quoted(path, 200)));
  }
  if ((info.st_mode & 077) == 0) return {};
  return Status(StatusCode::kPermissionDenied,
                str_cat("the TLS key ", quoted(path, 200),
                        " is open to others than its owner: chmod 600 it"));
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> load_tls(const std::string& certificate,
                                                   const std::string& key) {
  RETURN_IF_ERROR(check_key_mode(key));
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* raw = context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(
      raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // An idle connection gives its 34 KB of buffers back.
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(raw, &choose_http_1_1, nullptr);
  error_code ec;
  context->use_certificate_chain_file(certificate, ec);
  if (ec) return bad_file("certificate", certificate, ec);
  context->use_private_key_file(key, ssl::context::pem, ec);
  const auto reason = ERR_GET_REASON(static_cast<unsigned long>(ec.value()));
  if (ec && reason == X509_R_KEY_VALUES_MISMATCH) {
    return invalid_argument(str_cat("the TLS certificate ", quoted(certificate, 200),
                                    " and the key ", quoted(key, 200), " are no pair"));
  }
  if (ec) return bad_file("key", key, ec);
  return std::shared_ptr<const TlsContext>(std::make_shared<Context>(std::move(context)));
}

}  // namespace brigade::router
