/* SPDX-License-Identifier: Apache-2.0
 * A program of somebody else that uses the installed C door. */
#include <stdio.h>
#include <string.h>
#include <wirepress/wirepress.h>

int main(void) {
  static const char text[] = "wirepress wirepress wirepress wirepress wirepress wirepress";
  char frame[256], again[sizeof text];
  size_t frame_size = 0, size = 0;
  wpr_ctx *ctx = NULL;
  if (wpr_create(&ctx) != WPR_OK) return 1;
  if (wpr_compress(ctx, text, sizeof text, frame, sizeof frame, &frame_size) != WPR_OK ||
      wpr_decompress(ctx, frame, frame_size, again, sizeof again, &size) != WPR_OK) {
    fprintf(stderr, "%s\n", wpr_error(ctx));
    return 1;
  }
  wpr_free(ctx);
  if (size != sizeof text || memcmp(text, again, size) != 0) return 2;
  printf("%s\n", wpr_version());
  return 0;
}
