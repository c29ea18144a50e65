"""Images bought from paid services: requests, replies, rows, and the journal behind them.

A row of `images` says of a bought image:

- `prompt_sent`, `prompt_revised`: what left, and what the provider says it drew. `provider_params` says whether a
  negative prompt was sent, which only a `service` does whose file names it; it holds everything else that was sent, and
  what the reply says of size and quality.
- `rewriter`: `on` with a revised prompt (DALL-E 3, the responses API), `off` for DALL-E 2, else `unknown`, or as said.
- `safety`: `passed`, the provider's ratings, or what struck.
- `seed_honoured`: false where no seed is sent, empty with `send_seed`, since nobody tells.
- `model_version`: as the reply says. `requested_at`: when the reply was written down. `source_sha256`: the picture as
  it came, in `journal/pictures`.
- `status`: `ok`; `refused`, the model declined or made none; `filtered`, a policy's error, a blocked prompt,
  `IMAGE_SAFETY` and its like, fewer images than asked for; `failed`, a rejected request, a picture that cannot be read
  or is too large, an address that brings none, no reply in 6 tries. A picture that cannot be read is paid for and kept.

Addresses in replies are fetched without a key or proxy, over https, from public machines only (or from the server's
own, where that is private or this one), with at most 3 redirects, each checked, 64 MiB and 60 seconds.
"""
