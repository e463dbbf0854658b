// What the daemon is asked. Answers are kept with their ETag, so that what has not changed is not
// sent again.

const KEPT = 8;
const TIMEOUT_MS = 15_000;
const TOKEN = "tsoffset-token";
const answers = new Map();

/** Why there is no answer: `status` is 0 where the daemon could not be reached. */
export class Problem extends Error {
  constructor(status, detail, nextStep) {
    super(detail);
    this.status = status;
    this.nextStep = nextStep;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  remove: () => sessionStorage.removeItem(TOKEN),
};

/** The answer to GET of a path below /api/v1; the same object as long as it has not changed. */
export async function get(path) {
  const kept = answers.get(path);
  const response = await send(path, "GET", kept ? { "If-None-Match": kept.tag } : {});
  if (response.status === 304) return kept.body;
  const body = await read(response);
  const tag = response.headers.get("etag");
  answers.delete(path);
  if (tag) answers.set(path, { tag, body });
  if (answers.size > KEPT) answers.delete(answers.keys().next().value);
  return body;
}

/** Ask for something to be done. */
export async function post(path) {
  return read(await send(path, "POST", {}));
}

async function send(path, method, headers) {
  const shown = token.get();
  if (shown) headers.Authorization = `Bearer ${shown}`;
  try {
    return await fetch(`api/v1/${path}`, {
      method,
      headers,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (error) {
    const late = error.name === "TimeoutError";
    const detail = late ? "the daemon does not answer in time" : "the daemon cannot be reached";
    throw new Problem(0, detail, "check that it runs, and the network to it");
  }
}

async function read(response) {
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  const status = response.ok ? 0 : response.status;
  const detail = body?.detail ?? "the answer is not from tsoffset";
  throw new Problem(status, detail, body?.next_step ?? "check what listens at this address");
}
