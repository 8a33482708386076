// Words that nobody outside this project would search for or understand on first reading, each with
// the word to use. scripts/lint-language.mjs finds them in names, comments, texts and documents.
//   find    is searched in lines whose identifiers are cut into words: 'kOneRow' reads 'k One Row'
//   say     the word to use instead
//   such    a line with it, by which tests/js/scripts/lint.node.test.ts shows that it is found
//   in      only in files whose path begins so
//   except  what else the words mean

const core = /^(src|bindings|tests\/native|tests\/fuzz|tests\/bench\/.*\.cc)/;

export const bannedWords = [
  {
    find: /\bone row\b/i,
    say: 'GEMV',
    such: '// One row by B',
    except:
      /one row (per|each|after|registers)|(matrix|operand|array|tensor|bias|C|out) of one row/gi,
  },
  { find: /\bfew rows\b/i, say: 'skinny GEMM', such: 'constexpr int kFewRows = 4;' },
  {
    find: /\bby rows\b/i,
    say: 'row-major',
    such: 'B by rows',
    except: /(cut|shared|split) by rows/gi,
  },
  {
    find: /\bby columns\b/i,
    say: 'column-major',
    such: 'B by columns',
    except: /(cut|shared|split) by columns/gi,
  },
  { find: /\bside by side\b/i, say: 'contiguous', such: 'columns that lie side by side' },
  {
    find: /\bin place\b/i,
    say: 'unpacked ("in place" is for out = C, and for packed panels)',
    such: 'strip.in_place',
    in: /^src/,
    except: /\b([yc]|panels) in place\b|in place of/gi,
  },
  { find: /\blead\b/i, say: 'panel header', such: 'fill_lead(panel)', in: core },
  {
    find: /\bfetch(es|ed)?\b/i,
    say: 'prefetch',
    such: 'plan.fetch_a',
    in: core,
    except: /\.fetch (add|sub|and)\(/g, // functions of std::atomic
  },
  { find: /\b(is|are|reads?|block) through\b/i, say: 'prefetch', such: 'it is read through' },
  {
    find: /\bstreamed\b|\bremotes?\b/i,
    say: 'out-of-core',
    such: 'a remote operand',
    except: /-no-remote/g, // an option of Firefox
  },
  {
    find: /\bstreams?\b/i,
    say: 'out-of-core ("stream" is sequential access to memory)',
    such: 'if (plan.streams)',
    // In weights/, a stream is a ReadableStream.
    in: /^(js(?!\/weights)|bindings|tests\/js(?!\/weights)|src\/(api|include|out_of_core))/,
    except: /const stream of|stream\.set Encoding/g, // Node's
  },
  {
    find: /\bapart\b/i,
    say: 'unfused, separately, tell from, or "do not overlap"',
    such: 'rounded apart',
    except: /\b(bytes|elements|rows|columns|lines|panels|pages|stride|steps|far) apart\b/gi,
  },
  { find: /\bexcess\b/i, say: 'zero-point correction', such: 'columns.excess', in: core },
  { find: /\btaken off\b|\btakes? (it|that) off\b/i, say: 'subtracted', such: 'is taken off A' },
  { find: /\bmemory (gives|can give)\b/i, say: 'memory bandwidth', such: 'what memory gives' },
  { find: /\blast cache\b/i, say: 'LLC', such: 'from the last cache' },
  {
    find: /\b(deepest|shallowest|widest|narrowest|k lowest)\b/i,
    say: 'KC, NC (or kc_max, nc_min)',
    such: 'kDeepest',
    in: core,
  },
  { find: /\bblock of y\b/, say: 'macro-kernel', such: 'block_of_y(row)', in: core },
  { find: /\bbut for\b/i, say: 'except', such: 'all but for one' },
  { find: /\b(is|are|was|were) to be\b/i, say: 'must be', such: 'B is to be packed' },
  { find: /\bfor who\b/i, say: 'for a caller who', such: 'for who builds tests' },
  { find: /\ball that (it|they)\b/i, say: 'everything that it', such: 'all that it reads' },
  { find: /\bfor what\b/i, say: 'name the thing', such: '0 for what is absent' },
  { find: /\band gives (?!it back)|; gives\b/i, say: 'returns', such: 'Checks, and gives the sum' },
  { find: /\banew\b/i, say: 'again', such: 'packed anew' },
  {
    find: /\bso (many|much)\b/i,
    say: 'the count, or n',
    such: 'so many bytes',
    except: /\bso (many|much) (that|as)\b/gi,
  },
  {
    find: /\b(once|one|two|three|four|five|six|eight|times|bytes|[kM]B|us|ms|\d+) an? (thread|column|row|call|lane|element|panel|byte|product|instance|run)\b/i,
    say: '"per" column',
    such: 'one a column',
  },
  { find: /\bWhere (there|no|none|all)\b/, say: 'if', such: '// Where none fit' },
  { find: /\b(that|those) of\b/i, say: 'the noun again', such: 'its type is that of A' },
  { find: /\bbeside\b/i, say: 'next to, or compared with', such: 'the file beside it' },
  {
    find: /\b(is|are) no\b/i,
    say: 'is not a',
    such: '// A is no tensor',
    except: /\bthere (is|are) no\b|\b(is|are) no (longer|more)\b/gi,
  },
  { find: /(\b\d+|\}) wanted\b|\bnone wanted\b/i, say: 'expected 56', such: '60 bytes, 56 wanted' },
];
