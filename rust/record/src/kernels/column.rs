//! One borrowed Arrow column, and access to the bytes of its rows.

use super::error::KernelError;

/// Size of the largest number in a row.
pub(super) const NUMBER_SIZE_MAX: usize = 16;

/// Arrow's bitmap of rows that are not null, least significant bit first.
#[derive(Clone, Copy, Debug)]
pub struct Validity<'a> {
    bits: &'a [u8],
    offset: usize,
}

impl<'a> Validity<'a> {
    /// The bitmap of `len` rows that starts at bit `offset` of `bits`.
    pub fn new(bits: &'a [u8], offset: usize, len: usize) -> Result<Self, KernelError> {
        let end = offset.checked_add(len).ok_or(KernelError::Short(len))?;
        if bits.len() < end.div_ceil(8) {
            return Err(KernelError::Short(len));
        }
        Ok(Self { bits, offset })
    }

    /// Whether `row` holds a value.
    pub fn is_valid(self, row: usize) -> bool {
        let bit = self.offset + row;
        self.bits[bit / 8] >> (bit % 8) & 1 == 1
    }

    /// The bytes and the first bit of the bitmap.
    pub fn parts(self) -> (&'a [u8], usize) {
        (self.bits, self.offset)
    }
}

/// The buffers of a column, limited to its rows. Numbers need not be aligned.
#[derive(Clone, Debug)]
pub enum Values<'a> {
    /// `string`, `binary`: offsets, one more than rows, and data.
    Offsets32(&'a [[u8; 4]], &'a [u8]),
    /// `large_string`, `large_binary`, with 64-bit offsets.
    Offsets64(&'a [[u8; 8]], &'a [u8]),
    /// `string_view`, `binary_view`, and the buffers of long values.
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
    /// `fixed_size_binary` of that size.
    Fixed(usize, &'a [u8]),
    /// Numbers of 1, 2, 4 or 8 bytes, which are hashed big-endian, as in Kafka's serializers.
    Number(usize, &'a [u8]),
}

/// One Arrow column.
#[derive(Clone, Debug)]
pub struct Column<'a> {
    len: usize,
    validity: Option<Validity<'a>>,
    values: Values<'a>,
}

impl<'a> Column<'a> {
    /// Creates a column of `len` rows; its buffers may be longer.
    pub fn new(
        len: usize,
        validity: Option<Validity<'a>>,
        values: Values<'a>,
    ) -> Result<Self, KernelError> {
        let is_whole = match &values {
            Values::Offsets32(offsets, _) => len < offsets.len(),
            Values::Offsets64(offsets, _) => len < offsets.len(),
            Values::Views(views, _) => len <= views.len(),
            Values::Fixed(width, data) => holds(data, *width, len),
            Values::Number(width, data) => *width <= NUMBER_SIZE_MAX && holds(data, *width, len),
        };
        if is_whole { Ok(Self { len, validity, values }) } else { Err(KernelError::Short(len)) }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bitmap of valid rows; `None` if all rows are valid.
    pub fn validity(&self) -> Option<Validity<'a>> {
        self.validity
    }

    pub(super) fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// Call `each` with the bytes of every row in order; the bytes of a null row are unspecified.
    #[inline]
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8])) -> Result<(), KernelError> {
        match &self.values {
            Values::Offsets32(offsets, data) => {
                each_between(offsets[..=self.len].iter().map(|at| offset32(*at)), data, each)
            }
            Values::Offsets64(offsets, data) => {
                each_between(offsets[..=self.len].iter().map(|at| offset64(*at)), data, each)
            }
            Values::Fixed(width, data) => {
                (0..self.len).for_each(|row| each(&data[row * width..][..*width]));
                Ok(())
            }
            Values::Number(4, data) => {
                let numbers = data.as_chunks::<4>().0;
                numbers[..self.len].iter().for_each(|number| each(&big_endian(*number)));
                Ok(())
            }
            Values::Number(8, data) => {
                let numbers = data.as_chunks::<8>().0;
                numbers[..self.len].iter().for_each(|number| each(&big_endian(*number)));
                Ok(())
            }
            Values::Views(..) | Values::Number(..) => {
                let mut scratch = [0; NUMBER_SIZE_MAX];
                for row in 0..self.len {
                    each(self.get(row, &mut scratch)?.unwrap_or_default());
                }
                Ok(())
            }
        }
    }

    /// The bytes of a row, `None` for null; `scratch` holds converted bytes if needed.
    pub(super) fn get<'b>(
        &'b self,
        row: usize,
        scratch: &'b mut [u8; NUMBER_SIZE_MAX],
    ) -> Result<Option<&'b [u8]>, KernelError> {
        if self.validity.is_some_and(|validity| !validity.is_valid(row)) {
            return Ok(None);
        }
        let found = match &self.values {
            Values::Offsets32(at, data) => data.get(offset32(at[row])..offset32(at[row + 1])),
            Values::Offsets64(at, data) => data.get(offset64(at[row])..offset64(at[row + 1])),
            Values::Views(views, buffers) => view(&views[row], buffers),
            Values::Fixed(width, data) => Some(&data[row * width..][..*width]),
            Values::Number(width, data) => {
                let bytes = &mut scratch[..*width];
                bytes.copy_from_slice(&data[row * width..][..*width]);
                if cfg!(target_endian = "little") {
                    bytes.reverse();
                }
                Some(&*bytes)
            }
        };
        found.map(Some).ok_or(KernelError::Outside(row))
    }
}

fn holds(data: &[u8], width: usize, len: usize) -> bool {
    width.checked_mul(len).is_some_and(|size| size <= data.len())
}

/// Call `each` with the bytes between consecutive offsets.
#[inline]
fn each_between(
    mut offsets: impl Iterator<Item = usize>,
    data: &[u8],
    mut each: impl FnMut(&[u8]),
) -> Result<(), KernelError> {
    let mut start = offsets.next().unwrap_or_default();
    for (row, end) in offsets.enumerate() {
        each(data.get(start..end).ok_or(KernelError::Outside(row))?);
        start = end;
    }
    Ok(())
}

/// Convert an offset; a negative one becomes larger than any data.
#[expect(clippy::host_endian_bytes, reason = "Arrow's numbers have the byte order of the machine")]
pub(super) fn offset32(bytes: [u8; 4]) -> usize {
    i32::from_ne_bytes(bytes) as usize
}

#[expect(clippy::host_endian_bytes, reason = "Arrow's numbers have the byte order of the machine")]
pub(super) fn offset64(bytes: [u8; 8]) -> usize {
    i64::from_ne_bytes(bytes) as usize
}

fn big_endian<const N: usize>(mut number: [u8; N]) -> [u8; N] {
    if cfg!(target_endian = "little") {
        number.reverse();
    }
    number
}

/// Resolve a view: a length and 12 bytes, which are the value itself, or its first four bytes, the
/// number of its buffer and the offset in it.
fn view<'a>(view: &'a [u8; 16], buffers: &[&'a [u8]]) -> Option<&'a [u8]> {
    let ([size, _, buffer, start], _) = view.as_chunks::<4>() else { return None };
    let size = offset32(*size);
    if size <= 12 {
        return Some(&view[4..][..size]);
    }
    let start = offset32(*start);
    buffers.get(offset32(*buffer))?.get(start..start.checked_add(size)?)
}
