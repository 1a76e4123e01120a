// The engine's own words with orderings left out: the same code asked the device again, without them.
//
// Included behind abi/word.glsl, whose macros it takes back. What is left is atomic still: no word is torn and none is
// kept in a register, so what goes wrong then is order and nothing else.

#ifndef NF_LITMUS_LEFT_OUT
#define NF_LITMUS_LEFT_OUT

#ifdef NO_RELEASE
#undef PUBLISH
#define PUBLISH(word, content) PUT(word, content)
#endif

#ifdef NO_ACQUIRE
#undef OBSERVE
#define OBSERVE(word) PEEK(word)
#endif

#endif
