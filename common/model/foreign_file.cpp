// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "common/base/strings.h"
#include "common/model/gguf_header.h"

namespace brigade::model {
namespace {

constexpr std::string_view kConvert =
    "; convert it with llama.cpp's convert_hf_to_gguf.py, or fetch a GGUF of the same model";
constexpr std::string_view kDownload =
    "; the download gave a page about the file and not the file: fetch it again from its direct "
    "link";

/// How a kind of file that people mistake for a model begins.
struct Signature {
  std::string_view begins;
  std::string_view is;
  std::string_view advice;
};

using namespace std::string_view_literals;

constexpr std::array<Signature, 15> kSignatures = {{
    {"version https://git-lfs"sv, "a Git LFS pointer, which stands for the model"sv,
     "; fetch the file itself with `git lfs pull`"sv},
    {"<!DOCTYPE"sv, "a web page"sv, kDownload},
    {"<!doctype"sv, "a web page"sv, kDownload},
    {"<html"sv, "a web page"sv, kDownload},
    {"<?xml"sv, "an XML document"sv, kDownload},
    {"%PDF-"sv, "a PDF document"sv, ""sv},
    {"PK\x03\x04"sv, "a ZIP archive or a PyTorch checkpoint"sv, kConvert},
    {"\x80\x02"sv, "a Python pickle, such as an old PyTorch checkpoint"sv, kConvert},
    {"\x89HDF"sv, "an HDF5 file"sv, kConvert},
    {"\x1f\x8b"sv, "a gzip archive"sv, "; unpack it first"sv},
    {"\x28\xb5\x2f\xfd"sv, "a zstd archive"sv, "; unpack it first"sv},
    {"lmgg"sv, "a GGML file of before GGUF"sv, kConvert},
    {"fmgg"sv, "a GGML file of before GGUF"sv, kConvert},
    {"tjgg"sv, "a GGML file of before GGUF"sv, kConvert},
    {"FUGG"sv, "a GGUF file with its bytes swapped"sv, ""sv},
}};

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t';
  });
}

}  // namespace

std::string describe_foreign_file(std::string_view first_bytes) {
  for (const Signature& signature : kSignatures) {
    if (first_bytes.starts_with(signature.begins)) {
      return str_cat("not a GGUF file but ", signature.is, signature.advice);
    }
  }
  // safetensors: a JSON object behind its length in 8 bytes.
  if (first_bytes.size() > 9 && first_bytes.substr(5, 5) == "\0\0\0{\""sv) {
    return str_cat("not a GGUF file but safetensors", kConvert);
  }
  if (first_bytes.starts_with('{')) return "not a GGUF file but JSON";
  if (is_text(first_bytes)) return "not a GGUF file but text";
  return str_cat("not a GGUF file: it begins with ", quoted(first_bytes.substr(0, 4)),
                 " and not \"GGUF\"");
}

}  // namespace brigade::model
